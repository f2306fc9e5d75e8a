"""11.2 `grad_cam(model, layer, images, labels)`: where each picture speaks for its class."""

import random
from typing import Any

import torch
from torch.nn import functional as F

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
from hookedu.exercises.shared import all_detached, none_left
from hookedu.exercises.tools import close, copies, module_hooks
from hookedu.language import Text

_LAYERS = ("relu2", "relu1")  # at the first, maps are smaller than the picture; at the second they are not
_OTHERS = ("conv1", "relu1", "pool", "conv2", "relu2")


def _probe(grad_cam: Any, rng: random.Random) -> dict[str, Any]:
    case = make_case(rng)
    got = [
        grad_cam(case.model, case.model.get_submodule(layer), case.images.clone(), case.labels.clone())
        for layer in _LAYERS
    ]
    attached = sum(isinstance(cam, torch.Tensor) and cam.requires_grad for cam in got)
    return {"cams": copies(got), "attached": attached, "left": module_hooks(case.model)}


def _up(
    cam: torch.Tensor, mode: str = "bilinear", size: tuple[int, int] = (6, 8), **how: Any
) -> torch.Tensor:
    """(N, h, w) to (N, *size)."""
    return F.interpolate(cam[:, None], size=size, mode=mode, **how)[:, 0]


def _raw(maps: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """(N, h, w): the weighted sum, as it is before the ReLU."""
    return (grads.mean(dim=(2, 3), keepdim=True) * maps).sum(dim=1)


def _cam(maps: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    return _up(_raw(maps, grads).relu())


def _likely(case: Case, layer: str) -> dict[str, list[torch.Tensor]]:
    """Mistakes and what they give."""
    maps, grads = case.truth(layer)
    raw, cam = _raw(maps, grads), _cam(maps, grads)
    weights = grads.mean(dim=(2, 3), keepdim=True)
    low, high = cam.amin(dim=(1, 2), keepdim=True), cam.amax(dim=(1, 2), keepdim=True)
    named = {
        "no_relu": [_up(raw)],
        "relu_late": [_up(raw).relu()],
        "absolute": [_up(raw.abs()), _up(raw).abs()],
        "relu_on_weights": [_up((weights.relu() * maps).sum(dim=1)), _up((weights.abs() * maps).sum(dim=1))],
        "not_upsampled": [raw.relu(), raw.relu()[:, None]],
        "nearest": [_up(raw.relu(), "nearest")],
        "align_corners": [_up(raw.relu(), align_corners=True)],
        "height_and_width": [_up(raw.relu(), size=(8, 6))],
        "keeps_dim": [cam[:, None]],
        "normalised": [cam / high, (cam - low) / (high - low), cam / cam.max()],
        "no_average": [_up((grads * maps).sum(dim=1).relu())],
        "unweighted": [_up(maps.sum(dim=1)), _up(maps.mean(dim=1))],
        "averages_channels": [_up((weights * maps).mean(dim=1).relu())],
        "gradient_only": [_up(grads.sum(dim=1).relu()), _up(grads.mean(dim=1).relu())],
    }
    named |= {
        name: [_cam(*case.truth(layer, pick)) for pick in picks]
        for name, picks in case.other_classes().items()
    }
    return named | {"wrong_layer": [_cam(*case.truth(other)) for other in _OTHERS if other != layer]}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = make_case(rng)
    wanted = [_cam(*case.truth(layer)) for layer in _LAYERS]
    wrong = [i for i, got in enumerate(saw["cams"]) if not close(got, wanted[i])]
    place = wrong[0] if wrong else 0
    got = saw["cams"][place]
    mistake = None
    if wrong:
        mistake = "returns_nothing" if got is None else recognise(got, _likely(case, _LAYERS[place]))
    call = "grad_cam(model, layer, images, labels)"
    return [
        Criterion(
            *("cam", not wrong, 4),
            essential=True,
            given=case.given(_LAYERS[place]),
            expected=_describe(wanted[place]),
            got=_describe(got),
            mistake=mistake,
        ),
        all_detached(call, saw["attached"]),
        none_left("left", call, saw["left"], "leaves_hook"),
    ]


def _describe(cam: Any) -> str:
    """Shape, range and first numbers: a whole map is too long for a line."""
    if not isinstance(cam, torch.Tensor) or cam.numel() == 0:
        return f"cam: {show(cam)}"
    shape, first = "×".join(map(str, cam.shape)), show(cam.flatten()[:4].float())
    return f"cam: {shape}, from {cam.min():.4g} to {cam.max():.4g}; cam.flatten()[:4] == {first}"


GRAD_CAM = Exercise(
    id="11.2",
    title=Text(zh="Grad-CAM", en="Grad-CAM"),
    answer="grad_cam",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="从练习 11.1 抄起：同一个前向钩子还要留下 `output.detach()`。权重用 `mean(dim=(2, 3), keepdim=True)`，好和特征图相乘。",
            en="Start from exercise 11.1: the same forward hook also keeps `output.detach()`. Take the weights with "
            "`mean(dim=(2, 3), keepdim=True)`, so that they multiply the maps.",
        ),
        Text(
            zh="次序：乘权重，对通道求和，`relu()`，最后双线性放大到 `images.shape[-2:]`。",
            en="The order: times the weights, sum over channels, `relu()`, and last bilinear upsampling to `images.shape[-2:]`.",
        ),
        Text(
            zh="`cam = (weights * seen['maps']).sum(dim=1, keepdim=True).relu()`，然后 "
            "`return F.interpolate(cam, size=images.shape[-2:], mode='bilinear')[:, 0]`。",
            en="`cam = (weights * seen['maps']).sum(dim=1, keepdim=True).relu()`, then "
            "`return F.interpolate(cam, size=images.shape[-2:], mode='bilinear')[:, 0]`.",
        ),
    ),
    mistakes=(
        Mistake(
            "wrong_layer",
            Text(
                zh="这是另一层的图。要看的是参数 `layer` 的**输出**，不是写死的某一层，也不是它的输入 `args[0]`。",
                en="This is the map of another layer. Look at the **output** of the argument `layer`: not at one that is "
                "hard-coded, and not at its input, `args[0]`.",
            ),
            fails="cam",
        ),
        Mistake(
            "no_relu",
            Text(
                zh="图里有负数：少了 `relu()`。负的地方支持的是别的类，不该算成「看这里」。",
                en="Your map goes below 0: the `relu()` is missing. Negative places speak for other classes, and must not count as looked at.",
            ),
            fails="cam",
        ),
        Mistake(
            "relu_late",
            Text(
                zh="你先放大，再做 `relu()`：负数已经渗进相邻的像素。先 `relu()`，再放大。",
                en="You upsampled before the `relu()`, so negative values had already leaked into their neighbours. "
                "First `relu()`, then upsample.",
            ),
            fails="cam",
        ),
        Mistake(
            "absolute",
            Text(
                zh="你取了绝对值：反对这个类的地方也亮了起来。请用 `relu()`。",
                en="You took the absolute value: places that speak against the class light up too. Use `relu()`.",
            ),
            fails="cam",
        ),
        Mistake(
            "relu_on_weights",
            Text(
                zh="负的权重被去掉了。它们要留到求和之后：`relu()` 用在加权和上，不用在权重上。",
                en="The negative weights are gone. They have a part in the sum: `relu()` belongs on the weighted sum, not on the weights.",
            ),
            fails="cam",
        ),
        Mistake(
            "not_upsampled",
            Text(
                zh="图还是特征图的大小。用 `F.interpolate(..., size=images.shape[-2:], mode='bilinear')` 放大到图像的大小。",
                en="Your map still has the size of the feature maps. Bring it to the picture's with "
                "`F.interpolate(..., size=images.shape[-2:], mode='bilinear')`.",
            ),
            fails="cam",
        ),
        Mistake(
            "nearest",
            Text(
                zh="放大用了最近邻，`F.interpolate` 的默认值：图成了一块块的。写上 `mode='bilinear'`。",
                en="You upsampled by nearest neighbour, the default of `F.interpolate`, so the map is made of blocks. Say `mode='bilinear'`.",
            ),
            fails="cam",
        ),
        Mistake(
            "align_corners",
            Text(
                zh="`align_corners=True` 把图拉到了边上，各处的位置都偏了。去掉它。",
                en="`align_corners=True` stretches the map to the borders, and every place is a little off. Leave it out.",
            ),
            fails="cam",
        ),
        Mistake(
            "height_and_width",
            Text(
                zh="高和宽反了：`size` 是（高，宽），也就是 `images.shape[-2:]`。",
                en="Height and width are swapped: `size` is (height, width), which is `images.shape[-2:]`.",
            ),
            fails="cam",
        ),
        Mistake(
            "keeps_dim",
            Text(
                zh="多了一维通道：`F.interpolate` 要四维，返回之前用 `[:, 0]` 去掉它。",
                en="A channel dimension is left over: `F.interpolate` needs four dimensions, but take it off with `[:, 0]` before you return.",
            ),
            fails="cam",
        ),
        Mistake(
            "normalised",
            Text(
                zh="你把图缩放到了最大为 1。画图时可以这样做；这里要原来的值，好让各张图能比较。",
                en="You scaled the map so that its largest value is 1. Fine for a picture; here the values are wanted as they are, "
                "so that pictures can be compared.",
            ),
            fails="cam",
        ),
        Mistake(
            "no_average",
            Text(
                zh="你把梯度逐处乘到特征图上，没有先平均。Grad-CAM 每个通道只有一个权重。（不平均的叫 HiResCAM。）",
                en="You multiplied maps and gradient place by place, without averaging first. Grad-CAM has one weight for a channel. "
                "(Without the average it is called HiResCAM.)",
            ),
            fails="cam",
        ),
        Mistake(
            "unweighted",
            Text(
                zh="这是各通道直接相加，没有乘权重：哪里亮就亮，和问的是哪个类无关。",
                en="These are the channels added up without weights: it is bright where they are bright, whichever class you ask about.",
            ),
            fails="cam",
        ),
        Mistake(
            "averages_channels",
            Text(
                zh="对通道要求和，你取了平均：`sum(dim=1)`。",
                en="The channels are to be added up; you averaged them. Use `sum(dim=1)`.",
            ),
            fails="cam",
        ),
        Mistake(
            "gradient_only",
            Text(
                zh="这里只有梯度，没有特征图：梯度是权重，要乘到特征图上。",
                en="This is the gradient alone, without the feature maps: it gives the weights, which multiply the maps.",
            ),
            fails="cam",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`grad_cam` 返回了 `None`，也就是没有 `return`。",
                en="`grad_cam` returned `None`: a `return` is missing.",
            ),
            fails="cam",
        ),
        Mistake(
            "broadcast",
            Text(
                zh="`N×C` 的权重不能直接乘 `N×C×高×宽` 的特征图：用 `mean(dim=(2, 3), keepdim=True)`，或者 `weights[:, :, None, None]`。",
                en="Weights of `N×C` do not multiply maps of `N×C×height×width`: use `mean(dim=(2, 3), keepdim=True)` or "
                "`weights[:, :, None, None]`.",
            ),
            raises=r"The size of tensor a \(\d+\) must match the size of tensor b",
        ),
        Mistake(
            "needs_four_dimensions",
            Text(
                zh="双线性放大要四维的张量：求和时写 `sum(dim=1, keepdim=True)`，最后再用 `[:, 0]` 去掉通道。",
                en="Bilinear upsampling takes four dimensions: write `sum(dim=1, keepdim=True)`, and drop the channel with `[:, 0]` at the end.",
            ),
            raises=r"Got 3D input, but bilinear mode needs 4D input|Input and output must have the same number of spatial dimensions",
        ),
        Mistake(
            "attached",
            Text(
                zh="图是对的，可是还连着计算图：留下特征图时用 `output.detach()`。",
                en="The map is right, but still holds its graph: keep `output.detach()` of the maps.",
            ),
            fails="detached",
        ),
        *(*class_mistakes("cam"), NEEDS_SCALAR, NO_GRAPH, LEAVES_HOOK),
    ),
    insight=Text(
        zh="权重来自梯度，地点来自特征图：同一批特征图，换一个类，就换一张图。",
        en="The weights come from the gradient, the places from the maps: the same maps give another picture for another class.",
    ),
)
