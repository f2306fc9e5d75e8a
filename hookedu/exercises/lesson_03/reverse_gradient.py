"""03.5 `reverse_gradient(x, strength)`: same value forward, reversed gradient backward, on one path only."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_03.shared import RETURNS_NO_TENSOR, Paths, neighbour
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on
from hookedu.exercises.shared import HANDLE, MISREGISTERED
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text

# Calls for which y requires no gradient: x requires none, grad mode is off, or both.
_CALLS: tuple[str, ...] = (
    "x.requires_grad == False; y = reverse_gradient(x, strength)",
    "x.requires_grad == True; with torch.no_grad(): y = reverse_gradient(x, strength)",
    "x.requires_grad == False; with torch.no_grad(): y = reverse_gradient(x, strength)",
)


def _case(rng: random.Random) -> tuple[Paths, torch.Tensor, float]:
    """Return (paths, u, strength): u is the gradient that x receives from its other use."""
    paths = Paths.make(rng)
    return paths, whole(rng, len(paths.w)), float(rng.choice((2, 3, 4, 5)))


def _probe(reverse_gradient: Any, rng: random.Random) -> dict[str, Any]:
    paths, u, strength = _case(rng)
    skip, x = paths.run()
    y = reverse_gradient(x, strength)
    if not isinstance(y, torch.Tensor):
        return {"y": y}
    report = {"y": copies(y), "hooks": hooks_on(y)}
    loss = (u * x).sum() + (paths.w * (skip + y)).sum()
    loss.backward()
    report |= {"grad": copies(paths.x.grad), "s_grad": copies(paths.s.grad)}
    needs, plain = (paths.k * paths.x), (paths.k * paths.x).detach()
    calls = []
    for enabled, x in ((True, plain), (False, needs), (False, plain)):
        with torch.set_grad_enabled(enabled):
            try:
                calls.append(copies(reverse_gradient(x, strength)))
            except Exception as error:  # the judge decides what it means
                calls.append(type(error).__name__)
    return report | {"calls": calls}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    paths, u, strength = _case(rng)
    w, k, x = paths.w, paths.k, (paths.k * paths.x).detach()
    given = (
        f"strength = {strength:g}; x = {show(x)}; y = reverse_gradient(x, strength); "
        f"loss = ({show(u)} * x).sum() + ({show(w)} * y).sum()"
    )
    y = saw["y"]
    if isinstance(y, torch.Tensor):
        mistake = "changes_forward" if same(y, -strength * x) or same(y, -x) else None
    else:
        mistake = "no_return" if y is None else "returns_handle" if y == HANDLE else None
    criteria = [
        Criterion(
            "forward",
            same(y, x),
            essential=True,
            given=given,
            expected=f"y == {show(x)}",
            got=f"y == {show(y)}",
            mistake=mistake,
        )
    ]
    if not isinstance(y, torch.Tensor):
        return criteria
    got, expected = saw["grad"], k * (u - strength * w)
    wrong = {
        "forgot_return" if saw["hooks"] else "not_registered": u + w,
        "hooks_x": -strength * (u + w),
        "cut_off": u,
        "no_strength": u - w,
        "no_minus": u + strength * w,
    }
    mistake = next((name for name, value in wrong.items() if same(got, k * value)), None)
    calls = dict(zip(_CALLS, saw["calls"], strict=True))
    call = next((call for call, y in calls.items() if not same(y, x)), _CALLS[0])
    return [
        *criteria,
        Criterion(
            "reversed",
            same(got, expected),
            points=3,
            essential=True,
            given=given,
            expected=f"dloss/dx == {show(u - strength * w)}",
            got=f"dloss/dx == {show(got / k if isinstance(got, torch.Tensor) else got)}",
            mistake=mistake,
        ),
        neighbour(given.replace("* y)", "* (skip + y))") + "; skip = 2 * s", saw["s_grad"], 2 * w),
        Criterion(
            "no_grad",
            same(calls[call], x),
            points=1,
            given=call,
            expected=f"y == {show(x)}",
            got=show(calls[call]).strip("'"),
            mistake="needs_gradient" if isinstance(calls[call], str) else None,
        ),
    ]


REVERSE_GRADIENT = Exercise(
    id="03.5",
    title=Text(zh="梯度反转", en="Gradient reversal"),
    answer="reverse_gradient",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="挂在 `x` 上的钩子会改动经过 `x` 的全部梯度。先造一个值相同的新张量 `y`，只让这一条路经过它。",
            en="A hook on `x` changes everything that passes `x`. First make a new tensor `y` with the same values, "
            "so that only this path runs through it.",
        ),
        Text(
            zh="`y = x.view_as(x)` 就行。在 `y` 上挂一个返回 `-strength * grad` 的钩子，然后返回 `y`。",
            en="`y = x.view_as(x)` will do. Register a hook on `y` that returns `-strength * grad`, then return `y`.",
        ),
        Text(
            zh="`y` 不需要梯度时不接受钩子：先问 `if y.requires_grad:`（问 `y`，不是问 `x`），再写 `y.register_hook(lambda grad: -strength * grad)`；最后 `return y`。",
            en="When `y` requires no gradient, it does not accept a hook: check `if y.requires_grad:` (`y`, not `x`) before "
            "`y.register_hook(lambda grad: -strength * grad)`; last, `return y`.",
        ),
    ),
    mistakes=(
        Mistake(
            "hooks_x",
            Text(
                zh="钩子挂在了 `x` 上，于是另一条路的梯度也被反转了。先造一个新张量 `y = x.view_as(x)`，把钩子挂在 `y` 上。",
                en="Your hook is on `x`, and so the other path's gradient was reversed too. Make a new tensor first, "
                "`y = x.view_as(x)`, and register the hook on `y`.",
            ),
            fails="reversed",
        ),
        Mistake(
            "changes_forward",
            Text(
                zh="前向传播的值也变了号：乘以 `-strength` 的应当是梯度，不是 `x`。值要原样返回。",
                en="The values of the forward pass changed sign as well: multiply the gradient by `-strength`, not `x`. "
                "The values stay as they are.",
            ),
            fails="forward",
        ),
        Mistake(
            "cut_off",
            Text(
                zh="经过 `y` 的梯度到不了 `x`：`detach()`、`.data` 或 `torch.tensor(...)` 把图剪断了。用 `x.view_as(x)` 或 `x.clone()`。",
                en="The gradient that passes `y` never gets to `x`: `detach()`, `.data` or `torch.tensor(...)` cut the graph. "
                "Use `x.view_as(x)` or `x.clone()`.",
            ),
            fails="reversed",
        ),
        Mistake(
            "no_strength",
            Text(
                zh="变号了，大小却没变：还要乘以 `strength`。",
                en="The sign is right, the size is not: multiply by `strength` as well.",
            ),
            fails="reversed",
        ),
        Mistake(
            "no_minus",
            Text(
                zh="乘了 `strength`，却没有变号：应当返回 `-strength * grad`。",
                en="Multiplied by `strength`, but with its old sign: return `-strength * grad`.",
            ),
            fails="reversed",
        ),
        Mistake(
            "forgot_return",
            Text(
                zh="钩子触发了，梯度却没有变：钩子里少了 `return`。",
                en="The hook fired and nothing changed: a `return` is missing inside the hook.",
            ),
            fails="reversed",
        ),
        Mistake(
            "not_registered",
            Text(
                zh="返回的张量上没有钩子，梯度原样流过。",
                en="The tensor that you returned carries no hook, and the gradient passes as it is.",
            ),
            fails="reversed",
        ),
        Mistake(
            "returns_handle",
            Text(
                zh="你返回了句柄。这一次调用者要的是张量：它接下去还要用 `y` 计算。",
                en="You returned the handle. This time your caller wants the tensor, to go on computing with `y`.",
            ),
            fails="forward",
        ),
        Mistake(
            "no_return",
            Text(
                zh="`reverse_gradient` 什么也没有返回：最后要 `return y`。",
                en="`reverse_gradient` returned nothing: end with `return y`.",
            ),
            fails="forward",
        ),
        Mistake(
            "in_place",
            Text(
                zh="`x` 的梯度对了，邻居 `s` 的却坏了：你就地改了梯度（`mul_`、`neg_`、`*=`），而加法把同一个张量也交给了邻居。请返回 `-strength * grad`。",
                en="The gradient of `x` is right and that of its neighbour `s` is spoilt: you changed it in place (`mul_`, "
                "`neg_`, `*=`), and the addition gave the neighbour the same tensor. Return `-strength * grad`.",
            ),
            fails="neighbour",
        ),
        Mistake(
            "needs_gradient",
            Text(
                zh="这里它出错了：不需要梯度的张量不接受钩子。挂之前先问要挂的那个张量：`if y.requires_grad:`。只问 `x` 或者梯度是否打开，都不够。",
                en="Here it fails: a tensor that requires no gradient does not accept a hook. Before you register, ask the tensor that "
                "is to carry the hook: `if y.requires_grad:`. Asking `x`, or whether gradients are on, is not enough.",
            ),
            fails="no_grad",
        ),
        *(RETURNS_NO_TENSOR, *MISREGISTERED),
    ),
    insight=Text(
        zh="`y` 和 `x` 的值相同，却是另一个节点：钩子只管经过它的那一条路。这就是域对抗训练里的梯度反转层。",
        en="`y` has the values of `x` but is a node of its own: the hook rules one path only. "
        "This is the gradient reversal layer of domain-adversarial training.",
    ),
)
