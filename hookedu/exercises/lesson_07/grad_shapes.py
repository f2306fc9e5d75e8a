"""Exercise 07.1, `grad_shapes(layer, x)`: the shapes in grad_input and grad_output of a Linear."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_07.shared import THREE_ARGUMENTS, linear, quiet
from hookedu.exercises.observation import Opaque, show
from hookedu.language import Text


def _cases(rng: random.Random) -> tuple[nn.Linear, dict[str, torch.Tensor]]:
    """Return (layer, inputs); all sizes differ, so that no two shapes are equal by chance."""
    n_in, n_out, batch, steps = rng.sample(range(2, 10), 4)
    return linear(rng, n_in, n_out), {
        "two_d": torch.ones(batch, n_in, requires_grad=True),
        "three_d": torch.ones(batch, steps, n_in, requires_grad=True),
        "frozen": torch.ones(batch, n_in),
    }


def _plain(value: Any, depth: int = 0) -> Any:
    """Convert nested tuples and torch.Size to lists: an answer may use any of them."""
    if isinstance(value, (tuple, list)) and depth < 5:
        return [_plain(v, depth + 1) for v in value]
    return value


def _probe(grad_shapes: Any, rng: random.Random) -> dict[str, Any]:
    layer, inputs = _cases(rng)
    with quiet():
        report = {name: _plain(grad_shapes(layer, x)) for name, x in inputs.items()}
    left = len(layer._backward_hooks) + len(layer._forward_hooks) + len(layer._backward_pre_hooks)
    return report | {
        "hooks": left + len(layer._forward_pre_hooks),
        "grad_on_layer": layer.weight.grad is not None,
        "grad_on_x": any(x.grad is not None for x in inputs.values()),
        "needs": inputs["frozen"].requires_grad,
    }


def _tuples(value: Any) -> str:
    """Format a report as Python writes nested tuples, with the comma of a one-element tuple."""
    if not isinstance(value, list):
        return show(value)
    return "(" + ", ".join(_tuples(v) for v in value[:8]) + ("," if len(value) == 1 else "") + ")"


def _traces(saw: dict[str, Any]) -> Text:
    """Describe what an answer left behind, and where; empty if it left nothing."""
    places = [
        name for name, left in (("layer.weight", saw["grad_on_layer"]), ("x", saw["grad_on_x"])) if left
    ]
    found = []
    if places:
        found.append(
            Text(zh="`.grad` 在：{places}", en="`.grad` on: {places}").format(places=", ".join(places))
        )
    if saw["hooks"]:
        found.append(Text(zh="`layer` 上的钩子：{n} 个", en="hooks on `layer`: {n}").format(n=saw["hooks"]))
    if saw["needs"]:
        found.append(Text(zh="`x.requires_grad` 成了 `True`", en="`x.requires_grad` became `True`"))
    return Text(zh="；".join(t.zh for t in found), en="; ".join(t.en for t in found))


def _expected(layer: nn.Linear, x: torch.Tensor) -> list[list[Any]]:
    wanted = [[*x.shape[:-1], layer.out_features]]
    return [[list(x.shape)] if x.requires_grad else [None], wanted]


def _mistake(got: Any, layer: nn.Linear, x: torch.Tensor) -> str | None:
    """Return the mistake that gives `got` for an input that requires grad, or None."""
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
            kind,
            saw[name] == expected,
            points=1,
            essential=essential,
            given=line(inputs[name]),
            expected=_tuples(expected),
            got=_tuples(saw[name]),
            mistake=mistake,
        )

    frozen = saw["frozen"]
    first = frozen[0] if isinstance(frozen, list) and len(frozen) == 2 else ...
    of_none = "drops_none" if first == [] else "bare_none" if first is None else "always_a_shape"
    traces = _traces(saw)
    return [
        criterion("shapes", "two_d", True, _mistake(saw["two_d"], layer, inputs["two_d"])),
        criterion("any_dimensions", "three_d", False, "two_d_only"),
        criterion("none", "frozen", False, of_none),
        Criterion(
            "clean",
            not traces.en,
            points=1,
            given="grad_shapes(layer, x)",
            expected=Text(zh="没有钩子，没有 `.grad`", en="no hook, no `.grad`"),
            got=traces,
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
            zh="梯度的形状总是与它所属的张量相同。层的输入是什么形状？输出呢？权重不在其中。",
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
            "bare_none",
            Text(
                zh="`x` 不需要梯度时少了一层元组：`grad_input` 仍是一项的元组 `(None,)`，不是 `None`。",
                en="Where `x` needs no gradient a level of tuples is missing: `grad_input` is still a tuple of one, `(None,)`, not `None`.",
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
                zh="形状都对，却留下了痕迹（见上面的 Got）：钩子没有取下，或者 `backward()` 在 `layer` 的参数或 `x` 上写了 `.grad`，或者改了 `requires_grad`。`torch.autograd.grad` 不写 `.grad`；也可以不用反向传播，直接算出形状。",
                en="The shapes are right, but something was left behind (see Got): a hook still on, a `.grad` that `backward()` wrote on the "
                "parameters of `layer` or on `x`, or a changed `requires_grad`. `torch.autograd.grad` writes no `.grad`; or work the "
                "shapes out without any backward.",
            ),
            fails="clean",
        ),
        THREE_ARGUMENTS,
    ),
    insight=Text(
        zh="`grad_input` 和按位置传给 `forward` 的参数一一对应，`grad_output` 和它的返回值一一对应。没有一个输入需要梯度时，各项都是 `None`；只有一部分需要时，不需要的那些是全零的张量。",
        en="`grad_input` matches the positional arguments of `forward` one by one, `grad_output` what it returns. Where no input "
        "needs a gradient, each entry is `None`; where only some do, the others hold tensors of zeros.",
    ),
)
