"""Mosaics of feature maps: one image per layer, as one Axes per channel would be far slower."""

from dataclasses import dataclass

import numpy as np
import torch

from hookedu.hooks.tensors import real

NAN, POSITIVE_INF, NEGATIVE_INF, GAP = (255, 0, 255), (255, 140, 0), (0, 220, 255), (255, 255, 255)
SIGNED, UNSIGNED = (
    "RdBu_r",
    "viridis",
)  # colour maps: of data with negative values and of gradients; of all other data
_SMALLEST, _LARGEST = 24, 224  # pixels: smaller tiles are enlarged, larger ones subsampled


@dataclass(frozen=True)
class Mosaic:
    """An image of tiles, with what its title and colour bar need."""

    pixels: np.ndarray  # (height, width, 3), RGB as uint8
    corners: list[tuple[float, float, str]]  # x, y and label of each tile's upper left corner
    low: float | None  # value at the lower end of the colour scale; None if each map has its own
    high: float | None  # value at the upper end; None as for `low`
    cmap: str  # name of the matplotlib colour map
    caption: str  # which channels these are; "" if there is only one
    remarks: str  # how the data were reduced, and anything unusual about them


def mosaic(
    tensor: torch.Tensor,
    *,
    sample: int = 0,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    signed: bool | None = None,
) -> Mosaic | str:
    """Lay out the maps of a tensor as tiles, or return a message if it has none.

    Parameters
    ----------
    tensor : torch.Tensor
        ``(N, C, H, W)`` gives the C maps of one sample, ``(C, H, W)`` C maps, ``(H, W)`` and ``(L,)`` one
        map; of ``(N, C, D, H, W)`` the middle slice along D is taken.
    sample : int
        Index into the batch, for tensors of 4 or 5 dimensions.
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
        A message for an empty tensor, a single number, or more than 5 dimensions.

    Raises
    ------
    IndexError
        If ``sample`` or ``page`` does not exist.
    ValueError
        If ``tiles`` is less than 1.
    """
    if tiles < 1:
        raise ValueError(f"tiles must be at least 1, got {tiles}")
    shape = "×".join(map(str, tensor.shape))
    if tensor.numel() == 0:
        return f"empty: {shape}"
    remarks = []
    if tensor.is_complex():
        remarks.append("|z| of complex values")
    data = real(tensor.detach()).cpu()
    if data.dim() == 0:
        return f"a single number: {data.item():g}"
    if data.dim() > 5:
        return f"{data.dim()} dimensions: {shape}"
    maps = _as_maps(data, sample, remarks)
    pages = -(-len(maps) // tiles)
    if not 0 <= page < pages:
        raise IndexError(f"page {page} of {pages}: pages are counted from 0")
    first = page * tiles
    shown = maps[first : first + tiles]
    finite = _finite(maps)
    if signed is None:
        signed = finite.numel() > 0 and finite.min().item() < 0
    cmap = SIGNED if signed else UNSIGNED
    scale = None if per_map else _scale(finite, signed)
    if scale is None:
        images = np.stack([_coloured(one.numpy(), _scale(_finite(one), signed), cmap) for one in shown])
    else:
        images = _coloured(shown.numpy(), scale, cmap)
    labels = [f"ch {first + i}" for i in range(len(shown))] if len(maps) > 1 else []
    pixels, corners = _tiled(images, labels)
    low, high = scale or (None, None)
    return Mosaic(
        pixels,
        corners,
        low,
        high,
        cmap,
        caption=_caption(len(shown), len(maps), first),
        remarks=", ".join(remarks + _oddities(maps, finite, per_map)),
    )


def _as_maps(data: torch.Tensor, sample: int, remarks: list[str]) -> torch.Tensor:
    """Reduce a tensor of 1 to 5 dimensions to (C, H, W), and note in `remarks` what was selected."""
    if data.dim() >= 4:
        if not -len(data) <= sample < len(data):
            raise IndexError(f"sample {sample} of a batch of {len(data)}")
        if len(data) > 1:
            remarks.append(f"sample {sample} of {len(data)}")
        data = data[sample]
    if data.dim() == 4:
        depth = data.shape[1]
        remarks.append(f"depth {depth // 2} of {depth}")
        data = data[:, depth // 2]
    while data.dim() < 3:
        data = data[None]
    return data


def _finite(data: torch.Tensor) -> torch.Tensor:
    """Return the finite values; if all are, the tensor itself, as copying takes longer than checking."""
    return data if data.sum().isfinite() else data[data.isfinite()]


def _scale(finite: torch.Tensor, signed: bool) -> tuple[float, float]:
    """Return the range of finite values: symmetric about 0 for signed data, never of width 0."""
    if finite.numel() == 0:
        return (-1.0, 1.0) if signed else (0.0, 1.0)
    low, high = (end.item() for end in finite.aminmax())
    if signed:
        low, high = -max(-low, high), max(-low, high)
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
