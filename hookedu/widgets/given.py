"""What widgets are given: read where there is a sensible reading, and refused in words where there is none."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import traitlets

from hookedu.hooks.tensors import described, tensors_in
from hookedu.language import Text
from hookedu.widgets.runs import has_no_values

Shape = tuple[str, float, float]  # its class, column and row
_INDICES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def class_names(classes: Any) -> list[str]:
    """Return the names of classes."""
    if isinstance(classes, str | Mapping) or not isinstance(classes, Iterable):
        raise TypeError(str(NOT_NAMES.format(got=described(classes))))
    return [str(name) for name in classes]


def score_target(target: Any) -> Any:
    """Return what a score is of: None, a function, the index of a class, or one index for each sample."""
    if target is None or callable(target):
        return target
    try:
        found = torch.as_tensor(target)
    except Exception:  # words, a ragged list, a dict, ...
        found = torch.empty(0)
    if found.dtype not in _INDICES or found.dim() > 1 or not found.numel():
        raise TypeError(str(NOT_A_TARGET.format(got=described(target))))
    return target if found.dim() else operator.index(found)


def images_like(first: Any, images: Any) -> dict[str, tuple[Any, str]]:
    """Return the values to choose from in the place of the first argument, each with the code that makes it, by name."""
    if images is None:
        return {}
    listed = hasattr(images, "__getitem__") and hasattr(images, "__len__")
    alone = getattr(images, "ndim", 0) == 3 and isinstance(first, torch.Tensor) and first.dim() == 4
    if not listed or alone or isinstance(images, str | bytes):
        raise TypeError(str(NOT_IMAGES.format(got=described(images))))
    items = images.items() if isinstance(images, Mapping) else enumerate(images)
    return {(name := f"images[{key!r}]"): _like(first, image, name) for key, image in items}


def _like(first: Any, image: Any, name: str) -> tuple[Any, str]:
    """Return an image in the form that the first argument has, and the code that makes it so."""
    tensor = as_tensor(image) if isinstance(first, torch.Tensor) else None
    if tensor is None:
        if isinstance(first, torch.Tensor) and next(tensors_in(image), None) is None:
            raise TypeError(str(NOT_AN_IMAGE.format(name=name, got=described(image))))
        return image, name
    code = name if tensor is image else f"torch.as_tensor(numpy.array({name}))"
    if first.dim() == 4 and first.shape[1] == 1 and tensor.dim() == 2:  # a picture in grey
        tensor, code = tensor[None], f"{code}[None]"
    if first.dim() == 4 and tensor.dim() in (3, 4) and _channels_last(tensor, first.shape[1]):
        tensor, code = tensor.movedim(-1, -3), f"{code}.movedim(-1, -3)"
    if first.is_floating_point() and tensor.dtype == torch.uint8:
        tensor, code = tensor / 255, f"({code} / 255)"
    if first.is_floating_point() and tensor.dtype != first.dtype:
        tensor, code = tensor.to(first.dtype), f"{code}.to({first.dtype})"
    if tensor.device != first.device:
        tensor, code = tensor.to(first.device), f'{code}.to("{first.device}")'
    if first.dim() == 4 and tensor.dim() == 3:  # a single image, while the first argument is a batch
        tensor, code = tensor[None], f"{code}[None]"
    return tensor, code


def picture(value: Any, name: str) -> torch.Tensor:
    """Return a picture as 3×height×width floating-point numbers: bytes go from 0 to 1, channels that come last come first."""
    tensor = as_tensor(value)
    if tensor is not None and tensor.dim() == 3 and _channels_last(tensor, 3):
        tensor = tensor.movedim(-1, 0)
    if tensor is not None and tensor.dtype == torch.uint8:
        tensor = tensor / 255
    if (
        tensor is None
        or (tensor.dim() != 3 or len(tensor) != 3 or not tensor.numel())
        or not (tensor.is_floating_point() and tensor.layout is torch.strided)
        or has_no_values(tensor)
    ):
        raise ValueError(str(NO_PICTURE.format(name=name, got=described(value))))
    return tensor


def shapes_within(shapes: Any, classes: list[str], size: tuple[int, int]) -> list[Shape]:
    """Return shapes with numbers of Python's own, which can be sent to the browser; all must lie in a picture of this size."""
    (height, width), known = size, []
    for shape in shapes if isinstance(shapes, list | tuple) else [shapes]:
        match list(shape) if isinstance(shape, list | tuple) else shape:
            case [str(name), x, y] if name in classes:
                x, y = (number.item() if hasattr(number, "item") else number for number in (x, y))
                if _is_below(x, width) and _is_below(y, height):
                    known.append((name, x, y))
                    continue
        raise traitlets.TraitError(
            str(NO_SHAPE.format(got=repr(shape)[:100], known=", ".join(classes), width=width, height=height))
        )
    return known


def _is_below(number: Any, size: int) -> bool:
    return isinstance(number, int | float) and 0 <= number < size


def as_tensor(value: Any) -> torch.Tensor | None:
    """Return a tensor as it is, an array or an image of PIL as a tensor, and None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    if not hasattr(value, "__array_interface__"):
        return None
    import numpy as np

    try:
        return torch.as_tensor(np.array(value))  # a copy, as torch takes no array that runs backwards
    except TypeError:  # of objects, of words
        return None


def _channels_last(tensor: torch.Tensor, channels: int) -> bool:
    return tensor.shape[-1] == channels != tensor.shape[-3]


NOT_NAMES = Text(
    zh='`classes` 应当是类别名字的列表，如 `["cat", "dog"]`，得到的是 {got}。字典请写 `list(classes.values())`。',
    en='`classes` is a list of the names of classes, such as `["cat", "dog"]`; got {got}. Of a dict give '
    "`list(classes.values())`.",
)
NOT_A_TARGET = Text(
    zh="`target` 可以是一个类别的序号（如 `3`）、每个样本一个序号（如 `[0, 3]`），或者由输出算出一个数的函数"
    "（如 `lambda output: output[:, 3].sum()`）；得到的是 {got}。",
    en="`target` is the index of a class (`3`), one index for each sample (`[0, 3]`), or a function from the output to a "
    "single number (`lambda output: output[:, 3].sum()`); got {got}.",
)
NOT_IMAGES = Text(
    zh='`images` 应当是列表，或者名字到图的字典，如 `images={{"cat": cat}}`，得到的是 {got}。只有一张图时也写成列表：'
    "`images=[image]`。",
    en='`images` is a list, or a dict from names to images, such as `images={{"cat": cat}}`; got {got}. A single image '
    "goes into a list as well: `images=[image]`.",
)
NOT_AN_IMAGE = Text(
    zh="`{name}` 应当是张量、NumPy 数组或 PIL 图片，可以代替模型的第一个参数，得到的是 {got}。文件要先读进来，如 "
    "`PIL.Image.open(path)`。",
    en="`{name}` is to stand in the place of the first argument, as a tensor, a NumPy array or an image of PIL; got {got}. "
    "Read a file first, as with `PIL.Image.open(path)`.",
)
NO_PICTURE = Text(
    zh="{name} 应当是一张图：3×高×宽 的浮点数，从 0 到 1，和别的图一样大；字节（uint8）、高×宽×3、NumPy 数组和 PIL 图片"
    "也可以。得到的是 {got}。",
    en="{name} should be a picture: 3×height×width floating-point numbers from 0 to 1, as large as the others. Bytes (uint8), "
    "height×width×3, NumPy arrays and images of PIL will do as well; got {got}.",
)
NO_SHAPE = Text(
    zh="不是图里的形状：{got}。要写成 (类别, 列, 行)，类别是 {known} 之一，列小于 {width}，行小于 {height}。",
    en="No shape of this picture: {got}. It should be (class, column, row), the class one of {known}, the column below "
    "{width}, the row below {height}.",
)
