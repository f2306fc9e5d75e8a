"""02.3 `observe_once(y, seen)`: a hook that removes itself after the first gradient."""

import random
from typing import Any

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_02.shared import CHANGES_GRADIENT, case, given_line, unchanged
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import CALLS_NOW, HANDLE, NO_ARGUMENT, NO_HANDLE
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text


def _probe(observe_once: Any, rng: random.Random) -> dict[str, Any]:
    x, k, w = case(rng)
    y, seen, neighbour = k * x, [whole(rng, 2)], []  # `seen` already holds an item of the caller
    y.register_hook(neighbour.append)  # a third party's hook, which must keep working
    handle = observe_once(y, seen)
    early, hung = copies(seen), hooks_on(y) == 2
    (w * y).sum().backward(retain_graph=True)
    first, hooks = copies(seen), hooks_on(y)
    (2 * w * y).sum().backward()
    report = {
        "early": early,
        "hung": hung,
        "first": first,
        "hooks": hooks,
        "both": copies(seen),
        "handle": handle,
    }
    report |= {"neighbour": len(neighbour), "x_grad": copies(x.grad)}

    z, seen_z = x * x, []  # a second tensor must be observed too
    observe_once(z, seen_z)
    (w * z).sum().backward()
    u, seen_u = k * x, []  # removed before any backward: must stay silent
    remove_handle(observe_once(u, seen_u))
    cancelled = hooks_on(u)
    (w * u).sum().backward()
    return report | {"other": copies(seen_z), "cancelled": cancelled + len(seen_u)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, k, w = case(rng)
    before = [whole(rng, 2)]
    given = f"seen = {show(before)}; {given_line(x, k, w)}; loss.backward(); (2 * loss).backward()"
    first, both, expected = saw["first"], saw["both"], [*before, w]
    if not same(saw["early"], before):
        mistake = "asks_too_early"
    elif same(first, before) and not saw["hung"]:
        mistake = "removes_at_once"
    elif same(first, before):
        mistake = "asks_seen" if same(saw["other"], [w]) else "keeps_nothing"
    elif same(first, [w]):
        mistake = "overwrites"
    else:
        mistake = "never_removes" if same(both, [*expected, 2 * w]) else None
    return [
        unchanged(given, saw["x_grad"], 3 * k * w),
        Criterion(
            "neighbours",
            saw["neighbour"] == 2,
            essential=True,
            given=given,
            expected=Text(zh="`y` 上别人的钩子触发 2 次", en="the other hook on `y` fires 2 times"),
            got=Text(zh="{n} 次", en="{n} times").format(n=saw["neighbour"]),
            mistake="clears_everybody",
        ),
        Criterion(
            "sees",
            same(both, expected),
            points=2,
            essential=True,
            given=given,
            expected=f"seen == {show(expected)}",
            got=f"seen == {show(both)}",
            mistake=mistake,
        ),
        Criterion(
            "every_tensor",
            same(saw["other"], [w]),
            essential=True,
            given=f"seen_z = []; z = x * x; observe_once(z, seen_z); ({show(w)} * z).sum().backward()",
            expected=f"seen_z == {show([w])}",
            got=f"seen_z == {show(saw['other'])}",
            mistake="shared_flag",
        ),
        Criterion(
            "gone",
            saw["hooks"] == 1,
            points=1,
            given=Text(
                zh="第 1 次反向传播之后，`y` 上你的钩子", en="your hooks on `y` after backward number 1"
            ),
            expected="0",
            got=str(saw["hooks"] - 1),
            mistake="only_ignores",
        ),
        Criterion(
            "handle",
            saw["handle"] == HANDLE and saw["cancelled"] == 0,
            points=1,
            given="handle = observe_once(y, seen)"
            if saw["handle"] != HANDLE
            else "observe_once(y, seen).remove()",
            expected=Text(zh="取得下钩子的句柄", en="a handle that takes the hook off"),
            got=show(saw["handle"]).strip("<>")
            if saw["handle"] != HANDLE
            else Text(zh="`y` 上还有你的钩子", en="a hook of yours is still on `y`"),
            mistake="cancels_half" if saw["handle"] == HANDLE else "no_handle",
        ),
    ]


OBSERVE_ONCE = Exercise(
    id="02.3",
    title=Text(zh="只看一次", en="Observe once"),
    answer="observe_once",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="和 `watch` 一样开始。不同的只有一处：钩子记下梯度之后，要把自己取下来。用什么取？",
            en="Begin as in `watch`. One thing differs: after keeping the gradient, the hook takes itself off. With what?",
        ),
        Text(
            zh="钩子运行时 `handle` 早已有值了，所以里面可以写 `handle.remove()`，哪怕它在下面一行才赋值。",
            en="When the hook runs, `handle` has long had its value, so it may say `handle.remove()` "
            "although the assignment stands one line further down.",
        ),
        Text(
            zh="`def keep(grad):` 里两行：`seen.append(grad)` 和 `handle.remove()`；然后 `handle = y.register_hook(keep)`，`return handle`。",
            en="In `def keep(grad):` two lines, `seen.append(grad)` and `handle.remove()`; then "
            "`handle = y.register_hook(keep)` and `return handle`.",
        ),
    ),
    mistakes=(
        Mistake(
            "asks_too_early",
            Text(
                zh="还没有反向传播，你就动了 `seen`：那时不可能有梯度。只有钩子里面才拿得到它。",
                en="Before any backward pass you changed `seen` already: there cannot be a gradient yet. Only the hook gets it.",
            ),
            fails="sees",
        ),
        Mistake(
            "removes_at_once",
            Text(
                zh="`seen` 里没有梯度：钩子刚挂上去就被取下了。`handle.remove()` 要写在钩子里面，等它看过之后再执行。",
                en="There is no gradient in `seen`: the hook came off as soon as it was on. `handle.remove()` belongs inside the hook, "
                "to run once it has seen something.",
            ),
            fails="sees",
        ),
        Mistake(
            "keeps_nothing",
            Text(
                zh="钩子触发了，`seen` 里却没有梯度。要么 `seen = ...` 只新建了一个局部名字（请用 `seen.append(grad)`），要么「看过没有」存在了函数之外，上次检查时就已经记成看过了。",
                en="The hook fired, yet there is no gradient in `seen`. Either `seen = ...` only made a new local name (use `seen.append(grad)`), or whether it is done is kept outside the call and was set by an earlier check.",
            ),
            fails="sees",
        ),
        Mistake(
            "never_removes",
            Text(
                zh="第 2 次反向传播也被记了下来：钩子还挂着。看过第 1 次之后要 `handle.remove()`。",
                en="Backward number 2 was kept as well: the hook is still on. Call `handle.remove()` after number 1.",
            ),
            fails="sees",
        ),
        Mistake(
            "asks_seen",
            Text(
                zh="`seen` 里原来有东西时，钩子就什么也不记：`if not seen` 看不出你的钩子运行过没有。记下之后取下自己就好，用不着去问。",
                en="When `seen` already holds something, your hook keeps nothing: `if not seen` cannot tell whether your hook has run. "
                "Keep the gradient, take the hook off, and there is nothing to ask.",
            ),
            fails="sees",
        ),
        Mistake(
            "overwrites",
            Text(
                zh="`seen` 里原来的东西不见了：`seen[:] = [grad]`（或 `clear()`）把它换掉了。请往后面添加：`seen.append(grad)`。",
                en="What `seen` held before is gone: `seen[:] = [grad]` (or `clear()`) replaced it. Add at the end: `seen.append(grad)`.",
            ),
            fails="sees",
        ),
        Mistake(
            "cancels_half",
            Text(
                zh="提前 `remove()` 之后，`y` 上还留着你的钩子：返回的句柄只管得了其中一个。只挂一个钩子，返回它的句柄。",
                en="After an early `remove()` a hook of yours is still on `y`: the handle that you return covers only one of them. "
                "Attach a single hook and return its handle.",
            ),
            fails="handle",
        ),
        Mistake(
            "only_ignores",
            Text(
                zh="`seen` 是对的，但钩子还挂在 `y` 上，每次反向传播都白白触发。不要只是不理它，要把它取下来。",
                en="`seen` is right, but the hook is still on `y` and fires for nothing in every backward pass. "
                "Do not just ignore it: take it off.",
            ),
            fails="gone",
        ),
        Mistake(
            "clears_everybody",
            Text(
                zh="`y` 上别人的钩子也不见了。只取下自己的：用 `register_hook` 给你的那个句柄。",
                en="Somebody else's hook on `y` is gone as well. Take off only your own, with the handle that `register_hook` gave you.",
            ),
            fails="neighbours",
        ),
        Mistake(
            "shared_flag",
            Text(
                zh="第一个张量看到了，换一个张量就不再记录：「看过没有」存在了函数之外（可变的默认参数、全局变量），每次调用共用一份。",
                en="The first tensor was observed, the next one was not: whether it is done is kept outside the call "
                "(a mutable default, a global), so all calls share it.",
            ),
            fails="every_tensor",
        ),
        Mistake(
            "returns_a_tuple",
            Text(
                zh="`lambda grad: (a, b)` 会返回一个元组，而钩子返回的东西会被当成新的梯度。请用 `def`，什么也不返回。",
                en="`lambda grad: (a, b)` returns a tuple, and what a hook returns is taken for the new gradient. "
                "Use `def` and return nothing.",
            ),
            raises=r"expected Variable, but hook returned",
        ),
        Mistake(
            "handle_not_kept",
            Text(
                zh="钩子里用到的那个名字从来没有被赋值。把注册的结果存下来：`handle = y.register_hook(keep)`。",
                en="The name that your hook uses was never assigned. Store what registering gives you: `handle = y.register_hook(keep)`.",
            ),
            raises=r"^(NameError|UnboundLocalError)",
        ),
        *(CHANGES_GRADIENT, CALLS_NOW, NO_ARGUMENT, NO_HANDLE),
    ),
    insight=Text(
        zh="闭包里的 `handle` 到用的时候才去查，那时它早有值了。在触发的过程中取下自己，也不影响同一趟里的其他钩子。",
        en="A closure looks `handle` up when it runs, and by then it has a value. Taking itself off while firing "
        "does not disturb the other hooks of the same pass.",
    ),
)
