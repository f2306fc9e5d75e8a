"""02.1 `watch(y, seen)`: watch one gradient and return the handle."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_02.shared import CHANGES_GRADIENT, case, given_line, unchanged
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import CALLS_NOW, HANDLE, NO_ARGUMENT, NO_HANDLE, hands_over
from hookedu.exercises.tools import copies, same
from hookedu.language import Text


def _probe(watch: Any, rng: random.Random) -> dict[str, Any]:
    x, k, w = case(rng)
    y, seen = k * x, []
    handle = watch(y, seen)
    early, hooks = copies(seen), hooks_on(y)
    (w * y).sum().backward(retain_graph=True)
    (2 * w * y).sum().backward(retain_graph=True)
    report = {
        "early": early,
        "hooks": hooks,
        "seen": copies(seen),
        "x_grad": copies(x.grad),
        "handle": handle,
    }
    remove_handle(handle)
    (w * y).sum().backward()
    return report | {"after_removal": len(seen) - len(report["seen"])}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, k, w = case(rng)
    given = given_line(x, k, w) + "; loss.backward(); (2 * loss).backward()"
    seen, expected = saw["seen"], [w, 2 * w]
    if saw["early"]:
        mistake = "runs_backward" if isinstance(saw["early"][0], torch.Tensor) else "asks_too_early"
    elif not seen and saw["hooks"]:
        mistake = "rebinds_list"
    elif not seen:
        mistake = "watches_a_copy" if saw["handle"] == HANDLE else "not_registered"
    elif seen[0] is None:
        mistake = "reads_dot_grad" if seen == [None] * len(seen) else "retains_grad"
    elif same(seen, expected[1:]):
        mistake = "keeps_the_last"
    else:
        mistake = (
            None
            if all(isinstance(g, torch.Tensor) and g.shape == w.shape for g in seen)
            else "keeps_a_summary"
        )
    return [
        unchanged(given, saw["x_grad"], 3 * k * w, "runs_backward" if saw["early"] else "changes_gradient"),
        Criterion(
            "sees",
            same(seen, expected),
            points=2,
            essential=True,
            given=given,
            expected=f"seen == {show(expected)}",
            got=f"seen == {show(seen)}",
            mistake=mistake,
        ),
        hands_over("watch(y, seen)", saw["handle"], saw["after_removal"] == 0),
    ]


WATCH = Exercise(
    id="02.1",
    title=Text(zh="看住一个梯度", en="Watch one gradient"),
    answer="watch",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="钩子就是一个只有 1 个参数的函数。在 `watch` 里面写一个：它收到梯度，把梯度放进 `seen`。",
            en="A hook is a function of 1 argument. Write one inside `watch`: it gets the gradient and puts it into `seen`.",
        ),
        Text(
            zh="`y.register_hook(keep)` 会把 `keep` 挂到 `y` 上，同时返回一个句柄。这个句柄该交给谁？",
            en="`y.register_hook(keep)` attaches `keep` to `y` and gives back a handle. Who should get it?",
        ),
        Text(
            zh="3 行就够：`def keep(grad):`，里面 `seen.append(grad)`，最后 `return y.register_hook(keep)`。",
            en="Three lines (3) will do: `def keep(grad):`, in it `seen.append(grad)`, and last `return y.register_hook(keep)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "asks_too_early",
            Text(
                zh="`watch` 运行的时候还没有任何梯度，`y.grad` 是 `None`。梯度要等到反向传播才有，所以要留下一个函数等着它。",
                en="While `watch` runs there is no gradient yet, and `y.grad` is `None`. It comes with backward: "
                "leave a function behind that waits for it.",
            ),
            fails="sees",
        ),
        Mistake(
            "runs_backward",
            Text(
                zh="`watch` 自己跑了一次反向传播，`x.grad` 里因此多出一份。它只应当挂上钩子，由调用者去跑 `backward()`。",
                en="`watch` ran a backward pass of its own, which left an extra share in `x.grad`. "
                "It should only attach the hook; its caller runs `backward()`.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "reads_dot_grad",
            Text(
                zh="钩子里读的是 `y.grad`，而 `y` 不是叶子，它的 `.grad` 一直是 `None`。梯度是钩子的参数，用参数就好。",
                en="Your hook reads `y.grad`, but `y` is no leaf and its `.grad` stays `None`. "
                "The gradient is the hook's argument: use that.",
            ),
            fails="sees",
        ),
        Mistake(
            "retains_grad",
            Text(
                zh="钩子运行时，`y.grad` 里还没有这一次的梯度（`retain_grad` 要到钩子之后才写）。梯度是钩子的参数，用参数就好。",
                en="While the hook runs, `y.grad` does not hold this pass yet (`retain_grad` writes it after the hooks). "
                "The gradient is the hook's argument: use that.",
            ),
            fails="sees",
        ),
        Mistake(
            "keeps_the_last",
            Text(
                zh="`seen` 里只剩下最后一次的梯度：每次都清空或覆盖了它。只添加，不要删：`seen.append(grad)`。",
                en="Only the last gradient is left in `seen`: each pass empties or overwrites it. Add and remove nothing: `seen.append(grad)`.",
            ),
            fails="sees",
        ),
        Mistake(
            "rebinds_list",
            Text(
                zh="钩子触发了，`seen` 却是空的：`seen = ...` 只是新建了一个局部名字。要往调用者给的列表里添加：`seen.append(grad)`。",
                en="The hook fired, yet `seen` is empty: `seen = ...` only makes a new local name. "
                "Add to the caller's list instead: `seen.append(grad)`.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_registered",
            Text(
                zh="没有钩子挂到 `y` 上：只写好函数还不够，要用 `y.register_hook(keep)` 把它挂上去。",
                en="No hook is attached to `y`: writing the function is not enough, `y.register_hook(keep)` attaches it.",
            ),
            fails="sees",
        ),
        Mistake(
            "watches_a_copy",
            Text(
                zh="钩子挂在了另一个张量上（`clone()`、`detach()` 或一次运算的结果），梯度不经过它。请挂在 `y` 本身上。",
                en="Your hook is attached to another tensor (from `clone()`, `detach()` or an operation), "
                "and the gradient never passes there. Attach it to `y` itself.",
            ),
            fails="sees",
        ),
        Mistake(
            "keeps_a_summary",
            Text(
                zh="`seen` 里放的不是梯度本身，而是由它算出的别的东西。请把整个张量原样放进去。",
                en="What you put into `seen` is not the gradient but something computed from it. Keep the whole tensor as it came.",
            ),
            fails="sees",
        ),
        *(CHANGES_GRADIENT, CALLS_NOW, NO_ARGUMENT, NO_HANDLE),
    ),
    insight=Text(
        zh="`keep` 什么也不返回，梯度便原样流过；句柄交给了调用者，他想什么时候取下都行。",
        en="`keep` returns nothing, so the gradient flows on untouched; the caller holds the handle "
        "and can take the hook off at will.",
    ),
)
