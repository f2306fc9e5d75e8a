"""03.3 `build_chain(y, factors, seen)`: each hook continues from what the previous hook returned."""

import random
from dataclasses import replace
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_03.shared import (
    NOT_REGISTERED,
    READS_DOT_GRAD,
    RETURNS_NO_TENSOR,
    WRONG_TENSOR,
    Paths,
    neighbour,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import HANDLE, MISREGISTERED, NO_HANDLE
from hookedu.exercises.tools import copies, same
from hookedu.language import Text

# Powers of two, so that every ratio is exact. No three of them form a geometric progression, so no mistake gives the
# right result by coincidence.
_FACTORS = (2.0, -2.0, 4.0, -4.0, 0.5, -0.5)


def _case(rng: random.Random) -> tuple[Paths, list[float]]:
    return Paths.make(rng), rng.sample(_FACTORS, 3)


def _probe(build_chain: Any, rng: random.Random) -> dict[str, Any]:
    paths, factors = _case(rng)
    skip, y = paths.run()
    seen: list[Any] = []
    handles = build_chain(y, list(factors), seen)
    early, hooks = copies(seen), hooks_on(y)
    loss = (paths.w * (skip + y)).sum()
    loss.backward(retain_graph=True)
    report = {"early": early, "hooks": hooks, "seen": copies(seen), "handles": handles}
    report |= {"x_grad": copies(paths.x.grad), "s_grad": copies(paths.s.grad)}
    for handle in handles if isinstance(handles, (list, tuple)) else ():
        remove_handle(handle)
    paths.x.grad = None
    loss.backward()
    report |= {"after_removal": copies(paths.x.grad)}

    def without_last(share: int) -> list[Any]:
        """Return what `seen` holds if the last `share` handles are removed before backward."""
        skip, y = paths.run()
        seen: list[Any] = []
        handles = build_chain(y, list(factors), seen)
        for handle in handles[-share:] if isinstance(handles, (list, tuple)) else ():
            remove_handle(handle)
        (paths.w * (skip + y)).sum().backward()
        return copies(seen)

    # Remove the hooks of the last factor: the last hook alone, or as many hooks as each factor has.
    several = len(handles) // len(factors) if isinstance(handles, (list, tuple)) else 1
    return report | {"without_last": [without_last(1), without_last(max(1, several))]}


def _recognise(saw: dict[str, Any], w: torch.Tensor, factors: list[float]) -> str | None:
    """Return the id of the mistake behind what `seen` holds, or None."""
    seen, (f0, f1, f2) = saw["seen"], factors
    if saw["early"]:
        return "asks_too_early"
    if not saw["hooks"]:
        handles = saw["handles"]
        return "wrong_tensor" if isinstance(handles, list) and HANDLE in handles else "not_registered"
    if not seen:
        return "keeps_nothing"
    ratio = f2 / f1
    patterns = {
        "forgot_return": (1, 1, 1),
        "ratio_not_returned": (f0, f1 / f0, f2 / f1),
        "forgets_carry": (f0, f0 * f1, f0 * f1 * f2),
        "looks_first": (1, f0, f1),
        "in_place": (f2, f2, f2),
    }
    for first in (f0, f0 - 1):  # the first difference is taken to 0 or to 1
        steps = (first, first * (f1 - f0), first * (f1 - f0) * (f2 - f1))
        if same(seen, [f * w for f in steps]):
            return "difference"
    # The last ratio computed in the loop, or the last factor, looked up by every hook when it runs.
    late = [(ratio, ratio**2, ratio**3), (f2, f2**2, f2**3)]
    for name, pattern in patterns.items():
        if same(seen, [f * w for f in pattern]):
            return name
    if any(same(seen, [f * w for f in pattern]) for pattern in late):
        return "late_binding"
    return None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    paths, factors = _case(rng)
    w, k, handles = paths.w, paths.k, saw["handles"]
    given = f"factors = {factors}; {paths.given}; loss.backward()"
    expected, final = [f * w for f in factors], k * factors[-1] * w
    several = isinstance(handles, list) and HANDLE in handles
    good = several and all(handle == HANDLE for handle in handles)
    silent = same(saw["after_removal"], k * w)
    each = any(same(looks, expected[:-1]) for looks in saw["without_last"])
    if good and silent and not each:
        handle = Criterion(
            "handle",
            passed=False,
            points=1,
            given=given.replace("loss.b", "handles[-1].remove(); loss.b"),
            expected=f"seen == {show(expected[:-1])}",
            got=f"seen == {show(saw['without_last'][0])}",
            mistake="one_for_all",
        )
    else:
        handle = Criterion(
            "handle",
            good and silent,
            points=1,
            given="handles = build_chain(y, factors, seen)",
            expected=Text(zh="句柄的列表，每个系数一个", en="a list of handles, one for each factor"),
            got=show(handles).replace("<", "").replace(">", ""),
            mistake="some_handles" if several or handles == HANDLE else "no_handle",
        )
    return [
        Criterion(
            "looks",
            same(saw["seen"], expected) and not saw["early"],
            points=2,
            essential=True,
            given=given,
            expected=f"seen == {show(expected)}",
            got=f"seen == {show(saw['seen'])}",
            mistake=_recognise(saw, w, factors),
        ),
        Criterion(
            "final",
            same(saw["x_grad"], final),
            points=1,
            essential=True,
            given=given,
            expected=f"x.grad == {show(final)}",
            got=f"x.grad == {show(saw['x_grad'])}",
            mistake="only_notes" if same(saw["x_grad"], k * w) else None,
        ),
        neighbour(given, saw["s_grad"], 2 * w),
        handle,
    ]


BUILD_CHAIN = Exercise(
    id="03.3",
    title=Text(zh="照着要看到的搭一条链", en="Build a chain for given looks"),
    answer="build_chain",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="第一个钩子拿到的是原来的梯度，第二个拿到的却是第一个返回的。要从 `2 * g` 变成 `-6 * g`，该乘以几？",
            en="The first hook gets the original gradient, the second what the first returned. "
            "To get from `2 * g` to `-6 * g`, what do you multiply by?",
        ),
        Text(
            zh="每个钩子乘以「这次的系数 ÷ 上次的系数」，把结果放进 `seen`，再返回它。循环里别忘了当场固定这个比值。",
            en="Each hook multiplies by this factor divided by the previous one, puts the result into `seen` and returns it. "
            "Inside the loop, fix that ratio on the spot.",
        ),
        Text(
            zh="循环前 `previous = 1`；循环里 `def step(grad, ratio=factor / previous):`，其中 `new = grad * ratio`、`seen.append(new)`、`return new`；然后收下 `y.register_hook(step)`，再写 `previous = factor`。",
            en="Before the loop `previous = 1`; inside, `def step(grad, ratio=factor / previous):` with `new = grad * ratio`, "
            "`seen.append(new)`, `return new`; then collect `y.register_hook(step)` and set `previous = factor`.",
        ),
    ),
    mistakes=(
        Mistake(
            "forgets_carry",
            Text(
                zh="系数乘到一起去了：第二个钩子拿到的已经是改过的梯度，不是原来的。要乘的是这次与上次系数之比。",
                en="The factors piled up: the second hook gets a gradient that was changed already, not the original. "
                "Multiply by the ratio of this factor to the previous one.",
            ),
            fails="looks",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="每个钩子用的都是循环最后一轮的值：延迟绑定，和 02.2 一样。用默认参数当场固定，例如 `ratio=factor / previous`。",
                en="Every hook used the value of the loop's last round: late binding, as in 02.2. Fix it on the spot "
                "with a default, such as `ratio=factor / previous`.",
            ),
            fails="looks",
        ),
        Mistake(
            "looks_first",
            Text(
                zh="每次都看早了一步：先放进 `seen`、后改，看到的就是改之前的。钩子按注册的次序运行，先改再看。",
                en="Each look came one step too early: what goes into `seen` before the change is the old gradient. "
                "Hooks run in the order in which they were registered: change first, then look.",
            ),
            fails="looks",
        ),
        Mistake(
            "in_place",
            Text(
                zh="你就地改了梯度（`mul_` 或 `*=`）。`seen` 里放的、加法交给邻居的都是这同一个张量，它们跟着一起变了。请用 `grad * ratio` 造一个新的。",
                en="You changed the gradient in place (`mul_` or `*=`). What lies in `seen`, and what the addition gave to "
                "the neighbour, is that same tensor and changed with it. Make a new one: `grad * ratio`.",
            ),
            fails="looks",
        ),
        Mistake(
            "forgot_return",
            Text(
                zh="每次看到的都是原来的梯度。要么改的结果没有 `return`；要么钩子运行时才去查 `f` 和 `prev`，那时两者已经相等，比值是 1（延迟绑定，02.2）：用默认参数 `ratio=factor / previous` 固定它。",
                en="Every look shows the original gradient. Either the change was not returned, or the hook looks up `f` and "
                "`prev` only when it runs; by then they are equal and the ratio is 1 (late binding, 02.2). "
                "Fix it with a default, `ratio=factor / previous`.",
            ),
            fails="looks",
        ),
        Mistake(
            "ratio_not_returned",
            Text(
                zh="比值算对了，却没有 `return`：下一个钩子拿到的还是原来的梯度。把放进 `seen` 的那个张量也返回。",
                en="The ratio is right, but nothing was returned: the next hook got the original gradient. "
                "Use `return` for the tensor that goes into `seen`.",
            ),
            fails="looks",
        ),
        Mistake(
            "difference",
            Text(
                zh="你乘的是两个系数之差。乘法要用比值来接：这次的系数除以上次的，`factor / previous`。",
                en="You multiplied by the difference of two factors. Multiplying goes on by a ratio: "
                "this factor divided by the previous one, `factor / previous`.",
            ),
            fails="looks",
        ),
        Mistake(
            "one_for_all",
            Text(
                zh="取下最后一个句柄，少的应当只是最后一次。每个系数都要有自己的钩子，列表里按次序放它们各自的句柄。",
                en="With the last handle removed, only the last look should be missing. Each factor needs a hook of its own, "
                "and the list their handles in that order.",
            ),
            fails="handle",
        ),
        Mistake(
            "only_notes",
            Text(
                zh="`seen` 对了，梯度本身却没有变：你只把结果记了下来。还要 `return` 它，让它继续流下去。",
                en="`seen` is right, but the gradient never changed: you only noted the results. "
                "Use `return`, so that they flow on.",
            ),
            fails="final",
        ),
        Mistake(
            "keeps_nothing",
            Text(
                zh="钩子挂上了，`seen` 却是空的：用 `seen.append(...)` 往调用者给的列表里添加。",
                en="The hooks are on, yet `seen` is empty: add to the caller's list with `seen.append(...)`.",
            ),
            fails="looks",
        ),
        Mistake(
            "asks_too_early",
            Text(
                zh="还没有反向传播，`seen` 里就有东西了：那时没有梯度可看。要由钩子往里放。",
                en="Before any backward pass `seen` already holds something, when there was no gradient to look at. Let the hooks fill it.",
            ),
            fails="looks",
        ),
        Mistake(
            "some_handles",
            Text(
                zh="取下你返回的句柄之后，还有钩子在起作用：要把每个句柄都收进一个列表，返回整个列表。",
                en="After removing what you returned, some hook was still at work: collect every handle in a list and return the whole list.",
            ),
            fails="handle",
        ),
        *(replace(NOT_REGISTERED, fails="looks"), replace(WRONG_TENSOR, fails="looks")),
        *(READS_DOT_GRAD, RETURNS_NO_TENSOR, *MISREGISTERED, NO_HANDLE),
    ),
    insight=Text(
        zh="一条链就是函数的复合：每个钩子接着上一个的结果算。乘上 0 就再也回不来了，所以系数里没有 0。",
        en="A chain is a composition of functions: each hook goes on from the result before it. Once multiplied by 0 "
        "there is no way back, which is why no factor was 0.",
    ),
)
