"""07.1 `grad_shapes(layer, x)`: the shapes in grad_input and grad_output of a Linear."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.lesson_07.shared import THREE_ARGUMENTS, linear, quiet
from hookedu.exercises.model import Criterion, Exercise, Mistake
from hookedu.exercises.observation import Opaque, show
from hookedu.language import Text


def _cases(rng: random.Random) -> tuple[nn.Linear, dict[str, torch.Tensor]]:
    """(layer, inputs): all sizes differ, so that no two shapes agree by luck."""
    n_in, n_out, batch, steps = rng.sample(range(2, 10), 4)
    return linear(rng, n_in, n_out), {
        "two_d": torch.ones(batch, n_in, requires_grad=True),
        "three_d": torch.ones(batch, steps, n_in, requires_grad=True),
        "frozen": torch.ones(batch, n_in),
    }


def _plain(value: Any, depth: int = 0) -> Any:
    """torch.Size and tuples as lists, so that it does not matter which of them an answer uses."""
    if isinstance(value, (tuple, list)) and depth < 5:
        return [_plain(v, depth + 1) for v in value]
    return value


def _probe(grad_shapes: Any, rng: random.Random) -> dict[str, Any]:
    layer, inputs = _cases(rng)
    with quiet():
        report = {name: _plain(grad_shapes(layer, x)) for name, x in inputs.items()}
    left = len(layer._backward_hooks) + len(layer._forward_hooks) + len(layer._backward_pre_hooks)
    grads = [layer.weight.grad, *(x.grad for x in inputs.values())]
    return report | {
        "left": left,
        "grads": sum(grad is not None for grad in grads),
        "needs": inputs["frozen"].requires_grad,
    }


def _expected(layer: nn.Linear, x: torch.Tensor) -> list[list[Any]]:
    wanted = [[*x.shape[:-1], layer.out_features]]
    return [[list(x.shape)] if x.requires_grad else [None], wanted]


def _mistake(got: Any, layer: nn.Linear, x: torch.Tensor) -> str | None:
    """Which misunderstanding gives `got` for an input that needs a gradient."""
    (inner,), (outer,) = _expected(layer, x)
    if not isinstance(got, list) or len(got) != 2:
        return None
    weight = [layer.in_features, layer.out_features]
    flat = [entry for part in got if isinstance(part, list) for entry in part]
    if weight in flat or weight[::-1] in flat:
        return "weight_shapes"
    named = {
        "swapped": [[outer], [inner]],
        "no_tuples": [inner, outer],
        "no_batch": [[[inner[-1]]], [[outer[-1]]]],
        "same_both": [[inner], [inner]],
    }
    if any(isinstance(entry, (torch.Tensor, Opaque)) for entry in flat):
        return "keeps_tensors"
    return next((name for name, value in named.items() if got == value), None)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    layer, inputs = _cases(rng)

    def line(x: torch.Tensor) -> str:
        needs = ", requires_grad=True" if x.requires_grad else ""
        return f"layer = Linear({layer.in_features}, {layer.out_features}); x = torch.ones({tuple(x.shape)}{needs})"

    def criterion(kind: str, name: str, essential: bool, mistake: str | None) -> Criterion:
        expected = _expected(layer, inputs[name])
        return Criterion(
            *(kind, saw[name] == expected, 1),
            essential=essential,
            given=line(inputs[name]),
            expected=show(expected).replace("[", "(").replace("]", ")"),
            got=show(saw[name]).replace("[", "(").replace("]", ")"),
            mistake=mistake,
        )

    frozen = saw["frozen"]
    drops = isinstance(frozen, list) and len(frozen) == 2 and frozen[0] == []
    traces = Text(zh="{hooks} 个钩子，{grads} 个 `.grad`", en="{hooks} hooks, {grads} filled `.grad`")
    return [
        criterion("shapes", "two_d", True, _mistake(saw["two_d"], layer, inputs["two_d"])),
        criterion("any_dimensions", "three_d", False, "two_d_only"),
        criterion("none", "frozen", False, "drops_none" if drops else "always_a_shape"),
        Criterion(
            *("clean", not (saw["left"] or saw["grads"] or saw["needs"]), 1),
            given="grad_shapes(layer, x)",
            expected=traces.format(hooks=0, grads=0),
            got=traces.format(hooks=saw["left"], grads=saw["grads"]),
            mistake="leaves_traces",
        ),
    ]


GRAD_SHAPES = Exercise(
    id="07.1",
    title=Text(zh="Linear 的形状", en="Shapes for Linear"),
    answer="grad_shapes",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="一个张量的梯度，形状总和张量自己一样。层的输入是什么形状？输出呢？权重不在其中。",
            en="A gradient always has the shape of its own tensor. Which shape has the layer's input? And its output? The "
            "weights are not among them.",
        ),
        Text(
            zh="`Linear` 只改变最后一维，前面的维度原样保留：`(*x.shape[:-1], layer.out_features)`。",
            en="`Linear` changes only the last dimension and keeps those before it: `(*x.shape[:-1], layer.out_features)`.",
        ),
        Text(
            zh="`grad_input = (tuple(x.shape) if x.requires_grad else None,)`，`grad_output = ((*x.shape[:-1], layer.out_features),)`，返回这两个。",
            en="`grad_input = (tuple(x.shape) if x.requires_grad else None,)`, `grad_output = ((*x.shape[:-1], layer.out_features),)`; "
            "return the two.",
        ),
    ),
    mistakes=(
        Mistake(
            "swapped",
            Text(
                zh="两个写反了。`grad_output` 属于层的**输出**，`grad_input` 属于层的**输入**；名字说的是前向传播的方向，不是梯度流动的方向。",
                en="The two are swapped. `grad_output` belongs to the layer's **output**, `grad_input` to its **input**: the names "
                "speak of forward, not of the way the gradient goes.",
            ),
            fails="shapes",
        ),
        Mistake(
            "weight_shapes",
            Text(
                zh="里面有权重的形状。那是旧式钩子的毛病；`grad_input` 只有 `forward` 收到的张量，权重的梯度在 `weight.grad` 里。",
                en="A weight's shape is among them. That is the legacy hook's flaw; `grad_input` has only what `forward` "
                "received, and the weight's gradient goes into `weight.grad`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "no_tuples",
            Text(
                zh="数都对，少了一层元组：一层可以有几个输入，所以 `grad_input` 和 `grad_output` 总是元组，哪怕只有一项：`((6, 5),)`。",
                en="The numbers are right, one level of tuples is missing: a layer may have several inputs, so `grad_input` and "
                "`grad_output` are always tuples, even of one: `((6, 5),)`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "no_batch",
            Text(
                zh="少了批次那一维。梯度的形状和整个输入一样，而不是和一个样本一样。",
                en="The batch is missing. The gradient has the shape of the whole input, not of one sample.",
            ),
            fails="shapes",
        ),
        Mistake(
            "same_both",
            Text(
                zh="两个用了同一个形状。`grad_output` 是输出的梯度，最后一维是 `layer.out_features`。",
                en="Both have the same shape. `grad_output` is the gradient of the output; its last dimension is `layer.out_features`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="你返回的是张量，要的是它们的形状：`tuple(grad.shape)`。",
                en="You returned tensors; wanted are their shapes: `tuple(grad.shape)`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "two_d_only",
            Text(
                zh="输入有 3 维时不对。前面有几维就保留几维：`x.shape[:-1]`。",
                en="It fails for an input of 3 dimensions. Keep as many leading ones as there are: `x.shape[:-1]`.",
            ),
            fails="any_dimensions",
        ),
        Mistake(
            "always_a_shape",
            Text(
                zh="`x` 不需要梯度时，没有人去算它的梯度，`grad_input` 里那一项是 `None`。先看 `x.requires_grad`。",
                en="Where `x` needs no gradient nobody computes one, and its entry in `grad_input` is `None`. Look at `x.requires_grad` first.",
            ),
            fails="none",
        ),
        Mistake(
            "drops_none",
            Text(
                zh="`x` 不需要梯度时，那一项仍然占着位置：是 `(None,)`，不是空元组。",
                en="Where `x` needs no gradient its entry still keeps its place: `(None,)`, not an empty tuple.",
            ),
            fails="none",
        ),
        Mistake(
            "none_has_no_shape",
            Text(
                zh="`x` 不需要梯度时，`grad_input` 里是 `None`，它没有 `.shape`。先判断：`None if grad is None else tuple(grad.shape)`。",
                en="Where `x` needs no gradient `grad_input` holds `None`, which has no `.shape`. Ask first: "
                "`None if grad is None else tuple(grad.shape)`.",
            ),
            raises=r"'NoneType' object has no attribute '(shape|size)'",
        ),
        Mistake(
            "leaves_traces",
            Text(
                zh="答案对，却在层上留下了痕迹：钩子没有取下，或者 `backward()` 写了 `.grad`，或者改了 `requires_grad`。请还原；或者不用反向传播，直接算出形状。",
                en="Right, but you left traces: a hook still on, a `.grad` that `backward()` wrote, or a changed `requires_grad`. "
                "Put things back, or work the shapes out without any backward.",
            ),
            fails="clean",
        ),
        THREE_ARGUMENTS,
    ),
    insight=Text(
        zh="`grad_input` 和 `forward` 的参数一一对应，`grad_output` 和它的返回值一一对应；不需要梯度的那一项是 `None`。",
        en="`grad_input` matches the arguments of `forward` one by one, `grad_output` what it returns; where no gradient is "
        "needed the entry is `None`.",
    ),
)
