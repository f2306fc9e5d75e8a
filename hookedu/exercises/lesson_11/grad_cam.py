"""Exercise 11.2, `grad_cam(model, layer, images, labels)`: the regions that support a picture's class."""

import random
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_11.shared import (
    GRADIENT_MISTAKES,
    Case,
    class_mistakes,
    first_wrong,
    make_case,
    recognise,
    says,
)
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.shared import all_detached, none_left
from hookedu.exercises.tools import close, copies, module_hooks
from hookedu.language import Text

_OTHERS = ("conv1", "relu1", "pool", "conv2", "relu2")


def _calls(rng: random.Random) -> list[tuple[Case, str]]:
    """Return the calls to make: maps smaller than the picture, maps of its size, and a single picture."""
    case = make_case(rng)
    return [(case, "relu2"), (case, "relu1"), (case.first(), "relu2")]


def _probe(grad_cam: Any, rng: random.Random) -> dict[str, Any]:
    calls = _calls(rng)
    got = [
        grad_cam(case.model, case.model.get_submodule(layer), case.images.clone(), case.labels.clone())
        for case, layer in calls
    ]
    attached = sum(isinstance(cam, torch.Tensor) and cam.requires_grad for cam in got)
    return {"cams": copies(got), "attached": attached, "left": module_hooks(calls[0][0].model)}


def _up(
    cam: torch.Tensor, mode: str = "bilinear", size: tuple[int, int] = (6, 8), **how: Any
) -> torch.Tensor:
    """Resize (N, h, w) to (N, *size)."""
    return F.interpolate(cam[:, None], size=size, mode=mode, **how)[:, 0]


def _raw(maps: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    """Compute the weighted sum of the maps, (N, h, w), before the ReLU."""
    return (grads.mean(dim=(2, 3), keepdim=True) * maps).sum(dim=1)


def _cam(maps: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
    return _up(_raw(maps, grads).relu())


def _likely(case: Case, layer: str) -> dict[str, list[torch.Tensor]]:
    """Return the values that known mistakes give, by name."""
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
        "bicubic": [_up(raw.relu(), "bicubic")],
        "fixed_size": [_up(raw.relu(), size=(side, side)) for side in (16, 32)]
        + [_up(raw.relu(), size=(8 * raw.shape[1], 8 * raw.shape[2]))],
        "square": [_up(raw.relu(), size=(side, side)) for side in (6, 8)],
        "squeezes": [cam.squeeze()],
        "height_and_width": [_up(raw.relu(), size=(8, 6))],
        "keeps_dim": [cam[:, None]],
        "normalised": [cam / high, (cam - low) / (high - low), cam / cam.max()],
        "sums_gradient": [_cam(maps, grads * grads[0, 0].numel())],
        "mean_of_weights": [_up((weights.mean(dim=0, keepdim=True) * maps).sum(dim=1).relu())],
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
    calls = _calls(rng)
    wanted = [_cam(*case.truth(layer)) for case, layer in calls]
    wrong = [i for i, got in enumerate(saw["cams"]) if not close(got, wanted[i])]
    place = wrong[0] if wrong else 0
    got, expected, (case, layer) = saw["cams"][place], wanted[place], calls[place]
    picture = first_wrong(got, expected)
    call = "grad_cam(model, layer, images, labels)"
    return [
        Criterion(
            "cam",
            not wrong,
            points=4,
            essential=True,
            given=case.given(layer),
            expected=_describe(expected, picture),
            got=_describe(got, picture),
            mistake=_mistake(got, case, layer) if wrong else None,
        ),
        all_detached(call, saw["attached"]),
        none_left("left", call, saw["left"], "leaves_hook"),
    ]


def _mistake(got: Any, case: Case, layer: str) -> str | None:
    """Return the known mistake behind a wrong answer, or None."""
    if got is None:
        return "returns_nothing"
    if isinstance(got, list):
        return "returns_list"
    if isinstance(got, Opaque) and got.type.startswith("Tensor of float32"):
        return "fixed_size"  # too large for `encode`: maps of 64×64, not the pictures' 6×8
    return recognise(got, _likely(case, layer))


def _describe(cam: Any, picture: int) -> str | Text:
    """Describe the shape, and the range and a row of one map: a whole map is too long for a line."""
    if isinstance(cam, list):
        return Text(zh="一个列表，{n} 项", en="a list of {n}").format(n=len(cam))
    if not isinstance(cam, torch.Tensor) or cam.numel() == 0:
        return f"cam: {show(cam)}"
    shape = "×".join(map(str, cam.shape))
    if cam.ndim != 3 or picture >= len(cam):
        return f"cam: {shape}, from {cam.min():.4g} to {cam.max():.4g}"
    shown, row = cam[picture], cam.shape[1] // 2
    return f"cam: {shape}; cam[{picture}]: from {shown.min():.4g} to {shown.max():.4g}, row {row}: {show(shown[row])}"


_says = partial(says, "cam")

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
        _says(
            "wrong_layer",
            "这是另一层的图。要看的是参数 `layer` 的**输出**，不是写死的某一层，也不是它的输入 `args[0]`。",
            "This is the map of another layer. Look at the **output** of the argument `layer`: not at one that is "
            "hard-coded, and not at its input, `args[0]`.",
        ),
        _says(
            "no_relu",
            "图里有负数：少了 `relu()`。负的地方支持的是别的类，不该算成「看这里」。",
            "Your map goes below 0: the `relu()` is missing. Negative places speak for other classes, and must not count as looked at.",
        ),
        _says(
            "relu_late",
            "你先放大，再做 `relu()`：负数已经渗进相邻的像素。先 `relu()`，再放大。",
            "You upsampled before the `relu()`, so negative values had already leaked into their neighbours. "
            "First `relu()`, then upsample.",
        ),
        _says(
            "absolute",
            "你取了绝对值：反对这个类的地方也亮了起来。请用 `relu()`。",
            "You took the absolute value: places that speak against the class light up too. Use `relu()`.",
        ),
        _says(
            "relu_on_weights",
            "负的权重被去掉了。它们要留到求和之后：`relu()` 用在加权和上，不用在权重上。",
            "The negative weights are gone. They have a part in the sum: `relu()` belongs on the weighted sum, not on the weights.",
        ),
        _says(
            "not_upsampled",
            "图还是特征图的大小。用 `F.interpolate(..., size=images.shape[-2:], mode='bilinear')` 放大到图像的大小。",
            "Your map still has the size of the feature maps. Bring it to the picture's with "
            "`F.interpolate(..., size=images.shape[-2:], mode='bilinear')`.",
        ),
        _says(
            "nearest",
            "放大用了最近邻，`F.interpolate` 的默认值：图成了一块块的。写上 `mode='bilinear'`。",
            "You upsampled by nearest neighbour, the default of `F.interpolate`, so the map is made of blocks. Say `mode='bilinear'`.",
        ),
        _says(
            "align_corners",
            "`align_corners=True` 把图拉到了边上，各处的位置都偏了。去掉它。",
            "`align_corners=True` stretches the map to the borders, and every place is a little off. Leave it out.",
        ),
        _says(
            "bicubic",
            "放大用了 `mode='bicubic'`：它会冲过头，图里又冒出负数。用 `mode='bilinear'`。",
            "You upsampled with `mode='bicubic'`. It overshoots, and the map goes below 0 again. Use `mode='bilinear'`.",
        ),
        _says(
            "fixed_size",
            "放大的尺寸是写死的（64，或者 8 倍）。这里的图像是另一种大小：`size=images.shape[-2:]`。",
            "The size to enlarge to is hard-coded (64, or a factor of 8). The pictures here have another: `size=images.shape[-2:]`.",
        ),
        _says(
            "square",
            "你的图是正方形：`size` 只给一个数时，高和宽都用它。这里的图像宽比高大：`size=images.shape[-2:]`。",
            "Your map is a square: a single number as `size` serves for height and width. The pictures here are wider than high: "
            "`size=images.shape[-2:]`.",
        ),
        _says(
            "squeezes",
            "只有一张图时，`squeeze()` 把 `N` 那一维也去掉了。只去掉通道：`[:, 0]`，或者 `squeeze(1)`。",
            "With a single picture, `squeeze()` takes the dimension `N` away as well. Take off the channel alone: `[:, 0]` or `squeeze(1)`.",
        ),
        _says(
            "returns_list",
            "你返回的是一个列表。要一个张量 `N×H×W`：所有图一起算，或者最后 `torch.stack`。",
            "You returned a list. One tensor, `N×H×W`, is wanted: compute all pictures together, or `torch.stack` them at the end.",
        ),
        _says(
            "height_and_width",
            "高和宽反了：`size` 是（高，宽），也就是 `images.shape[-2:]`。",
            "Height and width are swapped: `size` is (height, width), which is `images.shape[-2:]`.",
        ),
        _says(
            "keeps_dim",
            "多了一维通道：`F.interpolate` 要四维，返回之前用 `[:, 0]` 去掉它。",
            "A channel dimension is left over: `F.interpolate` needs four dimensions, but take it off with `[:, 0]` before you return.",
        ),
        _says(
            "normalised",
            "你把图缩放到了最大为 1。画图时可以这样做；这里要原来的值，好让各张图能比较。",
            "You scaled the map so that its largest value is 1. Fine for a picture; here the values are wanted as they are, "
            "so that pictures can be compared.",
        ),
        _says(
            "sums_gradient",
            "权重是梯度在各处的**平均**，你用了和：整张图大了「高×宽」倍。写 `mean(dim=(2, 3), keepdim=True)`。",
            "A weight is the **average** of the gradient over the places; you took the sum, and the map is height × width times "
            "too large. Write `mean(dim=(2, 3), keepdim=True)`.",
        ),
        _says(
            "mean_of_weights",
            "你把各张图的权重也平均了。每张图有自己的权重：只对高和宽取平均，`dim=(2, 3)`，不要带上 0。",
            "You averaged the weights over the pictures too. Each picture has its own: average over height and width only, "
            "`dim=(2, 3)` without the 0.",
        ),
        _says(
            "no_average",
            "你把梯度逐处乘到特征图上，没有先平均。Grad-CAM 每个通道只有一个权重。（不平均的叫 HiResCAM。）",
            "You multiplied maps and gradient place by place, without averaging first. Grad-CAM has one weight for a channel. "
            "(Without the average it is called HiResCAM.)",
        ),
        _says(
            "unweighted",
            "这是各通道直接相加，没有乘权重：哪里亮就亮，和问的是哪个类无关。",
            "These are the channels added up without weights: it is bright where they are bright, whichever class you ask about.",
        ),
        _says(
            "averages_channels",
            "对通道要求和，你取了平均：`sum(dim=1)`。",
            "The channels are to be added up; you averaged them. Use `sum(dim=1)`.",
        ),
        _says(
            "gradient_only",
            "这里只有梯度，没有特征图：梯度是权重，要乘到特征图上。",
            "This is the gradient alone, without the feature maps: it gives the weights, which multiply the maps.",
        ),
        _says(
            "returns_nothing",
            "`grad_cam` 返回了 `None`，也就是没有 `return`。",
            "`grad_cam` returned `None`: a `return` is missing.",
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
        *(*class_mistakes("cam"), *GRADIENT_MISTAKES),
    ),
    insight=Text(
        zh="权重来自梯度，地点来自特征图：同一批特征图，换一个类，就是另一张热图。",
        en="The weights come from the gradient, the places from the maps: the same feature maps give another heat map for another class.",
    ),
)
