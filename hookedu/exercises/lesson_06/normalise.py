"""Exercise 06.2, `normalise(layer, mean, std)`: change the first input and nothing else."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_06.shared import (
    CALLS_NOW,
    NO_HANDLE,
    NOT_REGISTERED,
    ONE_ARGUMENT,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, module_hooks, same, whole
from hookedu.language import Text


class _Gate(nn.Module):
    """A layer with two inputs, so that an answer can lose or change the second; it records both."""

    def __init__(self):
        super().__init__()
        self.received: list[Any] = []
        self.first: Any = None  # first input of the last call, with its graph

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        self.received.append(copies([x, gate]))
        self.first = x
        return x * gate


def _case(rng: random.Random) -> dict[str, torch.Tensor]:
    """Return a case whose std is made of powers of two: every form of the formula gives the same bits."""
    n = rng.randint(2, 3)
    std = torch.tensor([rng.choice([2.0, 4.0, 8.0]) for _ in range(n)])
    x = whole(rng, 2 * n).reshape(2, n)  # all values differ, so no column is constant
    return {"x": x, "gate": whole(rng, n), "mean": whole(rng, n), "std": std}


def _probe(normalise: Any, rng: random.Random) -> dict[str, Any]:
    case = copies(_case(rng))
    x, gate, layer, before = case["x"], case["gate"], _Gate(), case["x"].clone()
    handle = normalise(layer, case["mean"], case["std"])
    report = {"handle": handle, "hooks": module_hooks(layer), "output": copies(layer(x, gate))}
    report |= {"x_after": copies(x), "received": layer.received[0], "calls": len(layer.received)}
    if same(report["x_after"], before):  # an in-place answer would only raise on a leaf that requires grad
        leaf = before.clone().requires_grad_()
        layer(leaf, gate)
        if isinstance(layer.first, torch.Tensor) and layer.first.requires_grad:
            layer.first.sum().backward()
        report["gradient"] = copies(leaf.grad)
    remove_handle(handle)
    fresh = torch.ones_like(x)
    layer(fresh, gate)
    return report | {"after_removal": same(layer.received[-1], [fresh, gate])}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = _case(rng)
    x, gate, mean, std = (case[key] for key in ("x", "gate", "mean", "std"))
    expected = (x - mean) / std
    received = saw["received"]
    got = received[0]
    given = f"normalise(layer, {show(mean)}, {show(std)}); layer({show(x)}, {show(gate)})"
    gradient = torch.ones_like(x) / std
    m, d = mean, std
    swapped = (x / d - m, x - m / d, (x - m) * d, (m - x) / d, (x - d) / m, (x + m) / d)
    if not saw["hooks"]:
        mistake = "not_registered"
    elif same(got, x):
        mistake = "forgets_return" if same(saw["output"], x * gate) else "too_late"
    elif any(same(got, wrong) for wrong in swapped):
        mistake = "wrong_formula"
    else:
        mistake = "own_statistics" if _own_statistics(got, x) else None
    return [
        Criterion(
            "intact",
            same(saw["x_after"], x),
            essential=True,
            given=given,
            expected=Text(zh="调用者的 `x` 不变", en="the caller's `x` as it was"),
            got=f"x == {show(saw['x_after'])}",
            mistake="in_place",
        ),
        Criterion(
            "receives",
            same(got, expected),
            points=1,
            essential=True,
            given=given,
            expected=Text(zh="`forward` 收到 {x}", en="`forward` receives {x}").format(x=show(expected)),
            got=show(got),
            mistake=mistake,
        ),
        Criterion(
            "rest",
            same(received[1], gate),
            points=1,
            given=given,
            expected=Text(zh="第二个输入仍是 {x}", en="the second input still {x}").format(x=show(gate)),
            got=show(received[1]),
            mistake="changes_the_rest",
        ),
        Criterion(
            "gradient",
            same(saw.get("gradient"), gradient),
            points=1,
            given=f"x = {show(x)}; normalise(layer, {show(mean)}, {show(std)})",
            expected=Text(zh="经过钩子的梯度 {x}", en="a gradient through the hook of {x}").format(
                x=show(gradient)
            ),
            got=show(saw.get("gradient")),
            mistake="cuts_gradient",
        ),
        hands_over("normalise(layer, mean, std)", saw["handle"], saw["after_removal"]),
    ]


def _own_statistics(got: Any, x: torch.Tensor) -> bool:
    """Check whether the batch's own mean was subtracted: by column, by row or over all values."""
    if not isinstance(got, torch.Tensor) or got.shape != x.shape:
        return False
    return any(bool(m.abs().max() < 1e-4) for m in (got.mean(0), got.mean(1), got.mean().reshape(1)))


NORMALISE = Exercise(
    id="06.2",
    title=Text(zh="把输入归一化", en="Normalise the input"),
    answer="normalise",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="前置钩子返回的东西会替换位置参数。先从 `args[0]` 算出一个新的张量，不要动旧的。",
            en="What a pre-hook returns replaces the positional arguments. Compute a new tensor from `args[0]`; leave the old one alone.",
        ),
        Text(
            zh="只返回一个张量的话，其余参数就丢了。要返回整个元组：新的第一个，加上 `*args[1:]`。",
            en="Return a single tensor and the other arguments are lost. Return a whole tuple: the new first one, then `*args[1:]`.",
        ),
        Text(
            zh="`def scale(module, args): return ((args[0] - mean) / std, *args[1:])`，然后 `return layer.register_forward_pre_hook(scale)`。",
            en="`def scale(module, args): return ((args[0] - mean) / std, *args[1:])`, then `return layer.register_forward_pre_hook(scale)`.",
        ),
    ),
    mistakes=(
        Mistake("not_registered", NOT_REGISTERED, fails="receives"),
        Mistake(
            "forgets_return",
            Text(
                zh="钩子运行了，`forward` 收到的却还是原来的 `x`：算好的张量没有 `return`。",
                en="The hook ran, yet `forward` received the old `x`: the tensor you computed was never returned.",
            ),
            fails="receives",
        ),
        Mistake(
            "too_late",
            Text(
                zh="变了的是输出，不是输入：你用了 `register_forward_hook`，它在 `forward` 之后才运行。请用 `register_forward_pre_hook`。",
                en="It is the output that changed, not the input: `register_forward_hook` runs after `forward`. Use `register_forward_pre_hook`.",
            ),
            fails="receives",
        ),
        Mistake(
            "wrong_formula",
            Text(
                zh="公式的次序不对：先减 `mean`，再除以 `std`，也就是 `(x - mean) / std`（注意括号）。",
                en="The steps are out of order: first subtract `mean`, then divide by `std`, that is `(x - mean) / std`; mind the parentheses.",
            ),
            fails="receives",
        ),
        Mistake(
            "own_statistics",
            Text(
                zh="你用了这一批数据自己的均值。要用调用者给的 `mean` 和 `std`：它们来自训练集，每一批都一样。",
                en="You used this batch's own mean. Use the caller's `mean` and `std`: they come from the training set and stay the same.",
            ),
            fails="receives",
        ),
        Mistake(
            "in_place",
            Text(
                zh="调用者的 `x` 被改掉了：`args[0]` 就是他的张量，`sub_`、`div_`、`-=` 会直接写进去。请算出新的张量再返回。",
                en="The caller's `x` was changed: `args[0]` is that very tensor, and `sub_`, `div_` or `-=` write into it. "
                "Compute a new tensor and return it.",
            ),
            fails="intact",
        ),
        Mistake(
            "changes_the_rest",
            Text(
                zh="第二个输入也被改了。只改 `args[0]`，其余用 `*args[1:]` 原样放回去。",
                en="The second input was changed as well. Change `args[0]` only and put the others back with `*args[1:]`.",
            ),
            fails="rest",
        ),
        Mistake(
            "cuts_gradient",
            Text(
                zh="数都对，梯度却回不到 `x`：`detach()`、`.data` 或 `no_grad` 把图剪断了，前面的层学不到东西。去掉它们。",
                en="The numbers are right, but no gradient gets back to `x`: `detach()`, `.data` or `no_grad` cut the graph, and the "
                "layers before learn nothing. Leave them out.",
            ),
            fails="gradient",
        ),
        Mistake(
            "drops_the_rest",
            Text(
                zh="`forward` 少了一个参数：返回单个张量（或一个列表）时，它替换了**全部**位置参数。返回元组 `(new, *args[1:])`。",
                en="`forward` misses an argument: a single tensor (or a list) replaces **all** positional arguments. "
                "Return the tuple `(new, *args[1:])`.",
            ),
            raises=r"missing 1 required positional argument: 'gate'",
        ),
        Mistake(
            "tuple_for_tensor",
            Text(
                zh="`args` 是元组，不能和张量相减。第一个输入是 `args[0]`。",
                en="`args` is a tuple; you cannot subtract a tensor from it. The first input is `args[0]`.",
            ),
            raises=r"unsupported operand type\(s\) for [-+*/]+=?: '(tuple|Tensor)' and '(tuple|Tensor)'|must be Tensor, not tuple",
        ),
        Mistake(
            "calls_layer",
            Text(
                zh="钩子里又调用了这一层，于是它又触发钩子，没完没了。不要自己调用：只返回新的输入，PyTorch 会去调用 `forward`。",
                en="The hook calls the layer, which fires the hook, which calls the layer … Do not call it: return the new input, "
                "and PyTorch calls `forward` with it.",
            ),
            raises=r"^RecursionError",
        ),
        *(CALLS_NOW, ONE_ARGUMENT, NO_HANDLE),
    ),
    insight=Text(
        zh="归一化跟着模型走：不管谁来调用，输入都按同一组数处理，也不会有人忘记。",
        en="The normalisation now travels with the model: whoever calls it, inputs are treated with the same numbers, and nobody can forget.",
    ),
)
