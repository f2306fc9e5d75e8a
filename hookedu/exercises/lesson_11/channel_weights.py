"""11.1 `channel_weights(model, layer, images, labels)`: how much each channel speaks for each picture's class."""

import random
from typing import Any

import torch

from hookedu.exercises.lesson_11.shared import (
    LEAVES_HOOK,
    NEEDS_SCALAR,
    NO_GRAPH,
    Case,
    class_mistakes,
    make_case,
    recognise,
)
from hookedu.exercises.model import Criterion, Exercise, Mistake
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
    """Mistakes and what they give."""
    maps, grads = case.truth(layer)
    named = {
        "sums": [grads.sum(dim=(2, 3))],
        "keeps_dims": [grads.mean(dim=(2, 3), keepdim=True)],
        "no_average": [grads],
        "averages_maps": [maps.mean(dim=(2, 3))],
        "wrong_axes": [grads.mean(dim=1), grads.mean(dim=(0, 2, 3)), grads.mean(dim=(1, 2, 3))],
        "absolute": [
            grads.abs().mean(dim=(2, 3)),
            grads.mean(dim=(2, 3)).abs(),
            grads.mean(dim=(2, 3)).relu(),
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
    got, layer = saw["weights"][place], _LAYERS[place]
    mistake = None
    if wrong:
        mistake = "returns_nothing" if got is None else recognise(got, _likely(case, layer))
    shown = (
        show(got[0]) if isinstance(got, torch.Tensor) and got.shape == wanted[place].shape else _shape(got)
    )
    return [
        Criterion(
            *("weights", not wrong, 3),
            essential=True,
            given=case.given(layer),
            expected=f"weights: {_shape(wanted[place])}; weights[0] == {show(wanted[place][0])}",
            got=f"weights: {_shape(got)}; weights[0] == {shown}"
            if shown != _shape(got)
            else f"weights: {shown}",
            mistake=mistake,
        ),
        none_left("left", "channel_weights(model, layer, images, labels)", saw["left"], "leaves_hook"),
    ]


def _shape(value: Any) -> str:
    return "×".join(map(str, value.shape)) if isinstance(value, torch.Tensor) else show(value)


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
        Mistake(
            "sums",
            Text(
                zh="你把各处的梯度加了起来，要的是平均：`mean(dim=(2, 3))`。",
                en="You added the gradients of all places; their average is wanted: `mean(dim=(2, 3))`.",
            ),
            fails="weights",
        ),
        Mistake(
            "keeps_dims",
            Text(
                zh="数都对，形状多了两维：这里要 `N×C`，请去掉 `keepdim=True`。",
                en="The numbers are right, with two dimensions too many: `N×C` is wanted here, so leave out `keepdim=True`.",
            ),
            fails="weights",
        ),
        Mistake(
            "no_average",
            Text(
                zh="你返回了每一处的梯度。一个通道只要一个权重：对高和宽取平均。",
                en="You returned the gradient at every place. A channel gets one weight: average over height and width.",
            ),
            fails="weights",
        ),
        Mistake(
            "averages_maps",
            Text(
                zh="你平均的是特征图，不是梯度：那只说明通道有多亮，不说明它对这个类有多要紧。",
                en="You averaged the feature maps, not the gradient: that tells how bright a channel is, not how much it "
                "matters to the class.",
            ),
            fails="weights",
        ),
        Mistake(
            "wrong_axes",
            Text(
                zh="平均错了维度。次序是 `N, C, 高, 宽`：只对最后两维取平均，图和通道都留着。",
                en="You averaged over the wrong dimensions. They are `N, C, height, width`: average over the last two only, "
                "and keep pictures and channels.",
            ),
            fails="weights",
        ),
        Mistake(
            "absolute",
            Text(
                zh="负的权重也要留着：它说明这个通道反对这个类。ReLU 以后才用，而且用在加权和上。",
                en="Keep negative weights: they say that the channel speaks against the class. The ReLU comes later, on the weighted sum.",
            ),
            fails="weights",
        ),
        Mistake(
            "grad_input",
            Text(
                zh="这是这一层**输入**的梯度（`grad_input`）。要的是输出的：`grad_output[0]`，或者挂在 `output` 上的张量钩子。",
                en="This is the gradient of the layer's **input** (`grad_input`). Take the output's: `grad_output[0]`, or a "
                "tensor hook on `output`.",
            ),
            fails="weights",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`channel_weights` 返回了 `None`，也就是没有 `return`。",
                en="`channel_weights` returned `None`: a `return` is missing.",
            ),
            fails="weights",
        ),
        *(*class_mistakes("weights"), NEEDS_SCALAR, NO_GRAPH, LEAVES_HOOK),
    ),
    insight=Text(
        zh="权重就是「把这个通道处处调亮一点，这个类的 logit 涨多少」，对所有位置取平均。",
        en="A weight says how much the class's logit rises when the channel gets a little brighter, averaged over all places.",
    ),
)
