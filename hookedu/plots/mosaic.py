"""Mosaics of feature maps: one image per layer, as one Axes per channel would be far slower."""

from dataclasses import dataclass

import numpy as np
import torch

from hookedu.hooks.tensors import real, shape_text, sizes
from hookedu.language import Text
from hookedu.plots.layouts import NAMES, check, layout_of

NAN, POSITIVE_INF, NEGATIVE_INF, GAP = (255, 0, 255), (255, 140, 0), (0, 220, 255), (255, 255, 255)
# Colour maps: of data with negative values and of gradients; of all other data.
SIGNED, UNSIGNED = "RdBu_r", "viridis"
_SMALLEST, _LARGEST = 24, 224  # pixels: smaller tiles are enlarged, larger ones subsampled
_MATRIX = 1000  # pixels: larger matrices are subsampled
_TOO_SPARSE = 2**28  # elements: a sparse tensor with more of them is not made dense to be drawn


@dataclass(frozen=True)
class Mosaic:
    """An image of tiles, or of one matrix, with what its title and colour bar need."""

    pixels: np.ndarray  # (height, width, 3), RGB as uint8
    corners: list[tuple[float, float, str]]  # x, y and label of each tile's upper left corner
    low: float | None  # value at the lower end of the colour scale; None if each map has its own
    high: float | None  # value at the upper end; None as for `low`
    cmap: str  # name of the matplotlib colour map
    caption: str  # which channels these are; "" if there is only one map
    remarks: str  # how the data were reduced, and anything unusual about them
    axes: tuple[str, str] | None = None  # of a matrix: what its rows and columns are
    size: tuple[int, int] = (0, 0)  # of a matrix: how many of them there are


def mosaic(
    tensor: torch.Tensor,
    *,
    layout: str | None = None,
    sample: int | None = None,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    signed: bool | None = None,
) -> Mosaic | str:
    """Lay out the maps of a tensor as tiles or its rows as a matrix, or return a message if it has none.

    Parameters
    ----------
    tensor : torch.Tensor
        Any tensor of 0 to 5 dimensions.
    layout : str, optional
        One letter per dimension; see `plot_feature_maps`. By default (C, H, W) and what is left of it in fewer
        dimensions; with `sample`, and for nested tensors, (N, T, C) and (N, C).
    sample : int, optional
        Index into the batch, 0 by default.
    tiles : int
        Number of maps per page.
    page : int
        Zero-based page.
    per_map : bool
        Whether each map has its own colour scale.
    signed : bool, optional
        Whether colours are symmetric about 0. By default they are if a finite value is negative.

    Returns
    -------
    Mosaic or str
        A message for an empty tensor, a single number, more than 5 dimensions, or a tensor whose values cannot be read.

    Raises
    ------
    IndexError
        If `sample` or `page` does not exist.
    ValueError
        If `tiles` is less than 1, or `layout` is not one of this tensor.
    """
    if tiles < 1:
        raise ValueError(f"tiles must be at least 1, got {tiles}")
    if layout and tensor.dim():
        check(layout, tensor.dim())
    # The parts of a nested tensor are its samples.
    if layout is None or (tensor.is_nested and layout[:1] != "N"):
        layout = layout_of(tensor.dim(), batched=sample is not None or tensor.is_nested)
    shape = shape_text(sizes(tensor))
    if not layout and tensor.dim():
        return f"{tensor.dim()} dimensions: {shape}"
    if tensor.numel() == 0:
        return f"empty: {shape}"
    if tensor.layout is torch.sparse_coo and tensor.numel() > _TOO_SPARSE:
        return f"sparse: {shape}"
    remarks = ["|z| of complex values"] if tensor.is_complex() else []
    chosen = _chosen(tensor, layout, sample, remarks)
    try:
        data = real(_selected(tensor.detach(), layout, chosen)).cpu()
        data.numpy()
    except Exception as error:  # such as of a tensor on the meta device or inside vmap
        return f"{shape}: values cannot be read ({type(error).__name__})"
    letters = "".join(letter for letter in layout if letter not in chosen)
    if data.dim() == 0:
        return f"a single number: {data.item():g}"
    tile = next(letter for letter in (*"AC", *letters) if letter in letters) if len(letters) == 3 else ""
    maps = data.movedim(letters.index(tile), 0) if tile else data.reshape(1, -1, data.shape[-1])
    rows, columns = letters.replace(tile, "") if tile else letters.rjust(2)
    axes = None if tile or letters in ("HW", "W") else (NAMES.get(rows, ""), NAMES[columns])
    if tile and rows + columns not in ("HW", "WH"):
        remarks.insert(0, f"{NAMES[rows]} × {NAMES[columns]}")
    pages = -(-len(maps) // tiles)
    if not 0 <= page < pages:
        raise IndexError(f"page {page} of {pages}: pages are counted from 0")
    first = page * tiles
    shown = maps[first : first + tiles]
    if axes:
        steps = [-(-size // _MATRIX) for size in shown.shape[1:]]
        remarks += [
            f"1 in {step} {name} drawn"
            for step, name in zip(steps, ("rows", "columns"), strict=True)
            if step > 1
        ]
        shown = shown[:, :: steps[0], :: steps[1]]
    finite = _finite(maps)
    if signed is None:
        signed = finite.numel() > 0 and finite.min().item() < 0
    cmap = SIGNED if signed else UNSIGNED
    scale = None if per_map else range_of(finite, signed)
    if scale is None:
        images = np.stack([_coloured(one.numpy(), range_of(_finite(one), signed), cmap) for one in shown])
    else:
        images = _coloured(shown.numpy(), scale, cmap)
    name = "ch" if tile == "C" else NAMES.get(tile, "")
    labels = [f"{name} {first + i}" for i in range(len(shown))] if len(maps) > 1 else []
    pixels, corners = (images[0], []) if axes else _tiled(images, labels)
    low, high = scale or (None, None)
    return Mosaic(
        pixels,
        corners,
        low,
        high,
        cmap,
        caption=_caption(len(shown), len(maps), first),
        remarks=", ".join(remarks + _oddities(maps, finite, per_map)),
        axes=axes,
        size=(maps.shape[1], maps.shape[2]),
    )


def _chosen(tensor: torch.Tensor, layout: str, sample: int | None, remarks: list[str]) -> dict[str, int]:
    """Return the index into each dimension of which one is drawn, and note in `remarks` what was selected."""
    chosen = {}
    if "N" in layout and (sample is not None or len(layout) > 2 or tensor.is_nested):
        n, chosen["N"] = tensor.size(layout.index("N")), sample or 0
        if not -n <= chosen["N"] < n:
            raise IndexError(f"sample {sample} of a batch of {n}")
        if n > 1:
            remarks.append(f"sample {chosen['N']} of {n}")
    elif sample and "N" not in layout and layout:
        raise IndexError(str(NO_BATCH.format(sample=sample, layout=layout)))
    if "D" in layout:
        depth = tensor.size(layout.index("D"))
        chosen["D"] = depth // 2
        remarks.append(f"depth {depth // 2} of {depth}")
    return chosen


def _selected(tensor: torch.Tensor, layout: str, chosen: dict[str, int]) -> torch.Tensor:
    if tensor.is_nested:
        tensor, layout = tensor.unbind()[chosen["N"]], layout.replace("N", "")
    elif tensor.layout is not torch.strided:
        tensor = real(tensor)
    for dimension, letter in reversed([*enumerate(layout)]):
        tensor = tensor.select(dimension, chosen[letter]) if letter in chosen else tensor
    return tensor


def _finite(data: torch.Tensor) -> torch.Tensor:
    """Return the finite values; if all are, the tensor itself, as copying takes longer than checking."""
    return data if data.sum().isfinite() else data[data.isfinite()]


def range_of(finite: torch.Tensor, signed: bool) -> tuple[float, float]:
    """Return the range of finite values: symmetric about 0 for signed data, never of width 0."""
    if finite.numel() == 0:
        return (-1.0, 1.0) if signed else (0.0, 1.0)
    low, high = (end.item() for end in finite.aminmax())
    if signed:
        low, high = -max(-low, high), max(-low, high)
    if low == high == 0 and not signed:
        return 0.0, 1.0  # a map of zeros is as dark as zeros elsewhere
    if low == high:
        width = abs(low) / 2 or 0.5
        low, high = low - width, high + width
    return low, high


def _coloured(data: np.ndarray, scale: tuple[float, float], cmap: str) -> np.ndarray:
    """Map numbers (..., H, W) to RGB (..., H, W, 3) as uint8; NaN and Inf get colours of no colour map."""
    from matplotlib import colormaps

    low, high = scale
    finite = np.isfinite(data)
    half = data / 2 - low / 2  # halves, as high - low may overflow
    unit = np.where(finite, half, 0) / (high / 2 - low / 2)
    pixels = colormaps[cmap](unit, bytes=True)[..., :3]
    if not finite.all():
        pixels[np.isnan(data)] = NAN
        pixels[data == np.inf] = POSITIVE_INF
        pixels[data == -np.inf] = NEGATIVE_INF
    return pixels


def _tiled(images: np.ndarray, labels: list[str]) -> tuple[np.ndarray, list[tuple[float, float, str]]]:
    """Arrange images (n, h, w, 3) in a roughly square grid; return its pixels and the tiles' corners."""
    step = -(-max(images.shape[1:3]) // _LARGEST)
    images = images[:, ::step, ::step]
    grow = -(-_SMALLEST // min(images.shape[1:3])) if len(images) > 1 else 1
    images = images.repeat(grow, 1).repeat(grow, 2)
    n, height, width, _ = images.shape
    columns = n if n <= 4 else min(n, max(1, round((n * height / width) ** 0.5)))
    rows = -(-n // columns)
    gap = max(2, width // 20)
    above = -(-max(rows * height, columns * width) // 45) if labels else 0  # room for a line of small print
    pixels = np.full((rows * (height + gap + above), columns * (width + gap), 3), GAP, np.uint8)
    corners = []
    for i, image in enumerate(images):
        y, x = i // columns * (height + gap + above) + above, i % columns * (width + gap)
        pixels[y : y + height, x : x + width] = image
        corners.append((x, y, labels[i] if labels else ""))
    return pixels[: pixels.shape[0] - gap, : pixels.shape[1] - gap], corners


def _caption(shown: int, total: int, first: int) -> str:
    if total == 1:
        return ""
    if first:
        return f"{first} to {first + shown - 1} of {total}, by index"
    return f"{shown} of {total}" + (", first by index" if shown < total else "")


def _oddities(maps: torch.Tensor, finite: torch.Tensor, per_map: bool) -> list[str]:
    """List what a reader must know to interpret the plot."""
    found = ["each map on a scale of its own"] if per_map else []
    if finite.numel() < maps.numel():
        nan, inf = maps.isnan().sum().item(), maps.isinf().sum().item()
        found += [f"{nan} NaN (magenta)"] if nan else []
        found += [f"{inf} Inf (+ orange, − cyan)"] if inf else []
    if finite.numel() and finite.min() == finite.max():
        found.append(f"constant {finite.min().item():g}")
    return found


NO_BATCH = Text(
    zh='没有第 {sample} 个样本：按布局 "{layout}"，这个张量没有批量维；有的话请用 `layout` 说明，例如 `layout="NTC"`',
    en='there is no sample {sample}: with layout "{layout}" the tensor has no batch dimension; if it has one, name it '
    'with `layout`, for example `layout="NTC"`',
)
