"""Exercise 11.1, `channel_weights(model, layer, images, labels)`: each channel's weight for a class."""

import random
from functools import partial
from itertools import combinations
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise
from hookedu.exercises.lesson_11.shared import (
    GRADIENT_MISTAKES,
    Case,
    class_mistakes,
    first_wrong,
    make_case,
    recognise,
    says,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import close, copies, module_hooks
from hookedu.language import Text

_LAYERS = ("relu2", "relu1")


def _probe(channel_weights: Any, rng: random.Random) -> dict[str, Any]:
    case = make_case(rng)
    got = [
        channel_weights(case.model, case.model.get_submodule(layer), case.images.clone(), case.labels.clone())
        for layer in _LAYERS
    ]
    return {"weights": copies(got), "left": module_hooks(case.model)}


def _likely(case: Case, layer: str) -> dict[str, list[torch.Tensor]]:
    """Return the values that known mistakes give, by name."""
    maps, grads = case.truth(layer)
    named = {
        "sums": [grads.sum(dim=(2, 3))],
        "keeps_dims": [grads.mean(dim=(2, 3), keepdim=True)],
        "no_average": [grads],
        "averages_maps": [maps.mean(dim=(2, 3))],
        "wrong_axes": [grads.mean(dim=axes) for n in range(1, 5) for axes in combinations(range(4), n)],
        "absolute": [
            grads.abs().mean(dim=(2, 3)),
            grads.mean(dim=(2, 3)).abs(),
            grads.mean(dim=(2, 3)).relu(),
        ],
        "relu_on_gradient": [grads.relu().mean(dim=(2, 3))],
        "head_weights": [
            case.model.get_parameter("head.weight")[case.labels] / n for n in (1, 64, maps[0, 0].numel())
        ],
        "grad_input": [(grads * (maps > 0)).mean(dim=(2, 3))],
    }
    return named | {
        name: [case.truth(layer, pick)[1].mean(dim=(2, 3)) for pick in picks]
        for name, picks in case.other_classes().items()
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = make_case(rng)
    wanted = [case.truth(layer)[1].mean(dim=(2, 3)) for layer in _LAYERS]
    wrong = [i for i, got in enumerate(saw["weights"]) if not close(got, wanted[i])]
    place = wrong[0] if wrong else 0
    got, expected, layer = saw["weights"][place], wanted[place], _LAYERS[place]
    mistake = None
    if wrong:
        mistake = "returns_nothing" if got is None else recognise(got, _likely(case, layer))
    row = first_wrong(got, expected)
    return [
        Criterion(
            "weights",
            not wrong,
            points=3,
            essential=True,
            given=case.given(layer),
            expected=_describe(expected, row),
            got=_describe(got, row),
            mistake=mistake,
        ),
        none_left("left", "channel_weights(model, layer, images, labels)", saw["left"], "leaves_hook"),
    ]


def _describe(weights: Any, row: int) -> str:
    """Describe the shape, and the weights of one picture."""
    if not isinstance(weights, torch.Tensor):
        return f"weights: {show(weights)}"
    shape = "×".join(map(str, weights.shape))
    return f"weights: {shape}" + (f"; weights[{row}] == {show(weights[row])}" if weights.ndim == 2 else "")


_says = partial(says, "weights")

CHANNEL_WEIGHTS = Exercise(
    id="11.1",
    title=Text(zh="每个通道的权重", en="A weight for each channel"),
    answer="channel_weights",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="在前向钩子里，`output` 就是特征图。给它挂一个张量钩子，反向传播时就能拿到它的梯度（第 07 课）。",
            en="In a forward hook, `output` is the feature maps. Put a tensor hook on it, and backward hands you its gradient (lesson 07).",
        ),
        Text(
            zh="一次反向传播就够：`model(images).gather(1, labels[:, None]).sum().backward()`。",
            en="One backward pass is enough: `model(images).gather(1, labels[:, None]).sum().backward()`.",
        ),
        Text(
            zh="前向钩子里写 `output.register_hook(lambda grad: seen.update(grads=grad))`；最后 `return seen['grads'].mean(dim=(2, 3))`。",
            en="In the forward hook: `output.register_hook(lambda grad: seen.update(grads=grad))`; at the end "
            "`return seen['grads'].mean(dim=(2, 3))`.",
        ),
    ),
    mistakes=(
        _says(
            "sums",
            "你把各处的梯度加了起来，要的是平均：`mean(dim=(2, 3))`。",
            "You added the gradients of all places; their average is wanted: `mean(dim=(2, 3))`.",
        ),
        _says(
            "keeps_dims",
            "数都对，形状多了两维：这里要 `N×C`，请去掉 `keepdim=True`。",
            "The numbers are right, with two dimensions too many: `N×C` is wanted here, so leave out `keepdim=True`.",
        ),
        _says(
            "no_average",
            "你返回了每一处的梯度。一个通道只要一个权重：对高和宽取平均。",
            "You returned the gradient at every place. A channel gets one weight: average over height and width.",
        ),
        _says(
            "averages_maps",
            "你平均的是特征图，不是梯度：那只说明通道有多亮，不说明它对这个类有多要紧。",
            "You averaged the feature maps, not the gradient: that tells how bright a channel is, not how much it "
            "matters to the class.",
        ),
        _says(
            "wrong_axes",
            "平均错了维度。次序是 `N, C, 高, 宽`：只对最后两维取平均，图和通道都留着。",
            "You averaged over the wrong dimensions. They are `N, C, height, width`: average over the last two only, "
            "and keep pictures and channels.",
        ),
        _says(
            "absolute",
            "负的权重也要留着：它说明这个通道反对这个类。ReLU 以后才用，而且用在加权和上。",
            "Keep negative weights: they say that the channel speaks against the class. The ReLU comes later, on the weighted sum.",
        ),
        _says(
            "relu_on_gradient",
            "你把梯度里的负数去掉了，平均就偏高。直接对梯度取平均；`relu()` 以后才用，而且用在加权和上。",
            "You cut off the gradient's negative values, and so the average is too high. Average the gradient as it is; "
            "the `relu()` comes later, on the weighted sum.",
        ),
        _says(
            "head_weights",
            "你读的是线性层的权重。只有在全局平均池化前面的那一层，它才和梯度的平均成正比；`layer` 可以是任何一层，模型也可以是别的。请用梯度。",
            "You read the linear layer's weights. They go with the average gradient only just before a global average pool; "
            "`layer` may be any layer, and the model another one. Use the gradient.",
        ),
        _says(
            "grad_input",
            "这是这一层**输入**的梯度（`grad_input`）。要的是输出的：`grad_output[0]`，或者挂在 `output` 上的张量钩子。",
            "This is the gradient of the layer's **input** (`grad_input`). Take the output's: `grad_output[0]`, or a "
            "tensor hook on `output`.",
        ),
        _says(
            "returns_nothing",
            "`channel_weights` 返回了 `None`，也就是没有 `return`。",
            "`channel_weights` returned `None`: a `return` is missing.",
        ),
        *(*class_mistakes("weights"), *GRADIENT_MISTAKES),
    ),
    insight=Text(
        zh="权重就是「把这个通道处处调亮一点，这个类的 logit 涨多少」，对所有位置取平均。",
        en="A weight says how much the class's logit rises when the channel gets a little brighter, averaged over all places.",
    ),
)
