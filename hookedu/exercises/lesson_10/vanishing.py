"""Exercise 10.4, `vanishing(model, x, target, ratio)`: children whose output gets too small a gradient."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.lesson_10.shared import (
    LEAVES_HOOKS,
    NO_FINALLY,
    RETURNS_NOTHING,
    SWALLOWS,
    Chain,
    backward_hooks,
    clean_after_error,
    interrupted,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import linear, whole
from hookedu.language import Text

_RUN: tuple[str, ...] = ("stem", "narrow", "act", "wide", "head")
_WEAK = ["stem", "narrow"]  # the expected children, in running order
_NAMES: tuple[str, ...] = ("lift", "mix", "gate", "fold", "join", "turn", "spread", "pick")
_CLASSES = 12

Size = Callable[[torch.Tensor], float]


def _case(
    rng: random.Random,
) -> tuple[dict[str, str], dict[str, torch.Tensor], torch.Tensor, torch.Tensor, float]:
    """Return (names, weights, x, target, ratio); names and weights are by role.

    Cases are drawn until each mistake gives a result of its own, which usually takes 2 milliseconds.
    """
    names = dict(zip(_RUN, rng.sample(_NAMES, len(_RUN)), strict=True))
    while True:
        weights = {
            "stem": torch.stack([whole(rng, 2) for _ in range(8)]) / 10,
            "narrow": torch.stack([whole(rng, 8) for _ in range(4)]) / 50,
            "wide": torch.stack([whole(rng, 4) for _ in range(8)]) / 200,
            "head": torch.stack([whole(rng, 8) for _ in range(_CLASSES)]) / 4,
        }
        x, target = (
            whole(rng, 4).reshape(2, 2) / 10,
            torch.tensor([rng.randrange(_CLASSES) for _ in range(2)]),
        )
        grads = _gradients(weights, x, target)
        size = {name: grad.abs().mean().item() for name, grad in grads.items()}
        if not 0 < 1.6 * size["narrow"] < size["act"] or size["head"] == 0:
            continue
        ratio = float(f"{(size['narrow'] * size['act']) ** 0.5 / size['head']:.2g}")
        others = (
            _below(grads, ratio, lambda g: g.norm().item()),
            _below(grads, ratio, lambda g: g.abs().mean().item(), of=max),
            _below(grads | {"narrow": grads["act"]}, ratio),
        )
        told_apart = all(o and o != _WEAK for o in others) and others[0] != others[1]
        clear = 1.2 * size["stem"] < ratio * size["head"]
        if ratio < 1 and clear and told_apart and _below(grads, ratio) == _WEAK:
            return names, weights, x, target, ratio


def _gradients(
    weights: dict[str, torch.Tensor], x: torch.Tensor, target: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Compute the gradient at every child's output, without hooks or in-place operations."""
    outputs = {}
    for name in _RUN:
        x = x.relu() if name == "act" else F.linear(x, weights[name].clone().requires_grad_())
        outputs[name] = x
    return dict(
        zip(_RUN, torch.autograd.grad(F.cross_entropy(x, target), list(outputs.values())), strict=True)
    )


def _below(
    grads: dict[str, torch.Tensor],
    ratio: float,
    size: Size = lambda grad: grad.abs().mean().item(),
    of: Callable[[list[float]], float] = lambda sizes: sizes[-1],
) -> list[str]:
    limit = ratio * of([size(grads[name]) for name in _RUN])
    return [name for name in _RUN if size(grads[name]) < limit]


def _model(names: dict[str, str], weights: dict[str, torch.Tensor], broken: bool = False) -> Chain:
    children: dict[str, nn.Module] = {
        names[role]: linear(weights[role]) for role in ("head", "narrow", "wide", "stem")
    }
    run = [names[role] for role in _RUN]
    return Chain(children | {names["act"]: nn.ReLU(inplace=True)}, run, broken)


def _probe(vanishing: Any, rng: random.Random) -> dict[str, Any]:
    names, weights, x, target, ratio = _case(rng)
    model = _model(names, weights)
    report = {"found": vanishing(model, x, target, ratio), "left": backward_hooks(model)}
    report["none"] = vanishing(_model(names, weights), x, target, 1e-9)
    broken = _model(names, weights, broken=True)
    return report | interrupted(vanishing, broken, x, target, ratio)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    names, weights, x, target, ratio = _case(rng)
    grads, weak = _gradients(weights, x, target), [names[role] for role in _WEAK]
    roles, found = {name: role for role, name in names.items()}, saw["found"]
    sizes = ", ".join(f"{names[role]} {grads[role].abs().mean().item():.2g}" for role in _RUN)
    given = Text(
        zh="{ratio}；按运行的次序，梯度的大小：{sizes}",
        en="{ratio}; in the order of running, sizes of the gradients: {sizes}",
    ).format(ratio=f"ratio = {ratio:g}", sizes=sizes)
    well_formed = isinstance(found, list) and all(isinstance(name, str) for name in found)
    by_role = [roles.get(name, name) for name in found] if well_formed else found
    complete = well_formed and sorted(found) == sorted(weak)
    return [
        Criterion(
            "finds",
            complete,
            points=3,
            essential=True,
            given=given,
            expected=show(weak),
            got=show(found),
            mistake=_wrong(by_role, grads, ratio),
        ),
        Criterion(
            "healthy",
            saw["none"] == [],
            points=1,
            essential=True,
            given="ratio = 1e-9",
            expected="[]",
            got=show(saw["none"]),
        ),
        Criterion(
            "order",
            found == weak,
            points=1,
            given=given,
            expected=show(weak),
            got=show(found),
            mistake="other_order",
        ),
        none_left("clean", "vanishing(model, x, target, ratio)", saw["left"], "leaves_hooks"),
        clean_after_error("vanishing(broken, x, target, ratio)", saw),
    ]


def _wrong(found: Any, grads: dict[str, torch.Tensor], ratio: float) -> str | None:
    if found is None:
        return "returns_nothing"
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return "no_names"
    if not found:
        return "nothing_found"
    if any("." in name for name in found):
        return "parameter_names"
    names = sorted(found)
    if names == sorted(_below(grads | {"narrow": grads["act"]}, ratio)):
        return "retains"
    if names == sorted(_below(grads, ratio, of=max)):
        return "against_largest"
    if names == sorted(_below(grads, ratio, lambda g: g.norm().item())):
        return "by_norm"
    return "comparison" if "head" in found else None


VANISHING = Exercise(
    id="10.4",
    title=Text(zh="梯度在哪里消失", en="Where gradients vanish"),
    answer="vanishing",
    points=7,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="和 10.4 节的听诊器一样：前向钩子里 `output.register_hook(...)`。完整反向钩子遇到就地 ReLU 会出错（第 07 课）。",
            en="As with the stethoscope of section 10.4: `output.register_hook(...)` inside a forward hook. A full backward hook fails with "
            "an in-place ReLU (lesson 07).",
        ),
        Text(
            zh="前向钩子把名字 `append` 进 `order`，张量钩子写 `sizes[name]`。反向传播之后，`order[-1]` 就是最后运行的那个。",
            en="The forward hook appends the name to `order`, the tensor hook writes `sizes[name]`. After backward, `order[-1]` is the one that ran last.",
        ),
        Text(
            zh="张量钩子：`lambda grad: sizes.update({name: grad.abs().mean().item()})`。"
            "最后：`return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]`。",
            en="The tensor hook: `lambda grad: sizes.update({name: grad.abs().mean().item()})`. "
            "Last: `return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]`.",
        ),
    ),
    mistakes=(
        replace(RETURNS_NOTHING, fails="finds"),
        Mistake(
            "no_names",
            Text(
                zh="要返回名字的列表，例如 `['conv1', 'conv2']`。",
                en="Return a list of names, such as `['conv1', 'conv2']`.",
            ),
            fails="finds",
        ),
        Mistake(
            "nothing_found",
            Text(
                zh="一个也没找到。取均值之前先取绝对值：交叉熵的梯度正负相消，最后一层的均值总是 0。也看看是不是跟第一个比了，或者每个名字都记成了最后一个。",
                en="None was found. Take absolute values before the mean: with cross-entropy plus and minus cancel, and the last mean is always 0. "
                "And see whether you compared with the first, or filed everything under the last name.",
            ),
            fails="finds",
        ),
        Mistake(
            "parameter_names",
            Text(
                zh="你量的是参数的梯度。这里要的是每个子模块**输出**的梯度。",
                en="You measured the gradients of parameters. Wanted here is the gradient at the **output** of every child.",
            ),
            fails="finds",
        ),
        Mistake(
            "retains",
            Text(
                zh="就地 ReLU 前面的那一层漏掉了，`retain_grad` 会跟到 ReLU 之后（第 07 课）。在前向钩子里挂张量钩子。",
                en="The layer before the in-place ReLU is missing: `retain_grad` moves behind the ReLU (lesson 07). Set a tensor "
                "hook inside the forward hook.",
            ),
            fails="finds",
        ),
        Mistake(
            "against_largest",
            Text(
                zh="你跟最大的一个比了。要跟**最后运行**的那个比。",
                en="You compared with the largest. Compare with the one that ran **last**.",
            ),
            fails="finds",
        ),
        Mistake(
            "by_norm",
            Text(
                zh="你用的是范数、总和或最大值，元素多的层就显得大。用 `grad.abs().mean()`，大小不同的层才可比。",
                en="You took a norm, a sum or the largest, which makes layers with many elements look large. With `grad.abs().mean()` layers of any size compare.",
            ),
            fails="finds",
        ),
        Mistake(
            "comparison",
            Text(
                zh="最后运行的那个不可能小于自己的 `ratio` 倍：比较的方向反了，跟别的层比了，或者取均值之前没有取绝对值。",
                en="What ran last cannot be below `ratio` times itself: the comparison is the wrong way round, or with another layer, or the mean is not one of absolute values.",
            ),
            fails="finds",
        ),
        Mistake(
            "other_order",
            Text(
                zh="名字都对，次序不对：要按运行的次序。梯度到达的次序正好相反，`named_children()` 的是定义的次序。",
                en="The right names in another order. Wanted is that of running: gradients arrive the other way round, and `named_children()` goes by definition.",
            ),
            fails="order",
        ),
        Mistake(
            "full_hook",
            Text(
                zh="完整反向钩子遇到就地 ReLU 就出错（第 07 课）：改用前向钩子，在里面给输出挂张量钩子。",
                en="A full backward hook fails with an in-place ReLU (lesson 07): take a forward hook that sets a tensor hook on the output.",
            ),
            raises=r"is a view and is being modified inplace",
        ),
        *(LEAVES_HOOKS, NO_FINALLY, SWALLOWS, RETURNS_TUPLE, CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="平均绝对值不看层有多大，张量钩子不怕就地操作：这样的检查可以挂在任何模型上。",
        en="A mean absolute value does not care how large a layer is, and a tensor hook does not mind operations in place: this check fits any model.",
    ),
)
