"""Figures of LayerPicker."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hookedu.hooks.tensors import named_tensors, real, shape_text
from hookedu.plots.maps import plot_feature_maps, plot_gradients
from hookedu.plots.mosaic import SIGNED, UNSIGNED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TILES = 64  # channels per page
_WIDTH, _DPI = 5.8, 100  # inches; pixels of the page per inch


def new_figure() -> "Figure":
    """Return an empty figure. It is none of pyplot, which keeps every figure until it is closed."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, _WIDTH), dpi=_DPI)


@dataclass(frozen=True)
class Selection:
    """The part of a tensor that is shown; `channel` is None for a whole page of channels."""

    sample: int = 0
    page: int = 0
    channel: int | None = None


class Form:
    """How a tensor is shown: as one map per channel, or as a strip of numbers.

    `unbatched` says that 3 dimensions are (C, H, W), not a batch. `samples` and `channels` are the numbers to
    choose from: 1 sample if there is no batch dimension, 0 channels if there are no maps.
    """

    def __init__(self, shape: tuple[int, ...], unbatched: bool) -> None:
        self.shape, dimensions = shape, len(shape)
        self.is_maps = dimensions in (4, 5) or (dimensions == 3 and unbatched)
        self.batched = dimensions >= 3 and not (dimensions == 3 and unbatched)
        self.samples = shape[0] if self.batched else 1
        self.channels = (shape[1] if self.batched else shape[0]) if self.is_maps else 0

    def index(self, selection: Selection) -> tuple[int | slice, ...]:
        """Return the index of the part of the tensor that is shown."""
        index: list[int | slice] = [selection.sample] if self.batched else []
        if self.is_maps:
            first = selection.page * TILES
            chosen = slice(first, min(first + TILES, self.channels))
            index.append(chosen if selection.channel is None else selection.channel)
        if len(self.shape) == 5:
            index.append(self.shape[2] // 2)  # the middle slice of a volume
        return tuple(index)

    @property
    def numbers(self) -> int:
        """How many numbers all maps of one sample have."""
        return self.channels * math.prod(self.shape[-2:])


def brackets(index: tuple[int | slice, ...]) -> str:
    """Format an index as code, brackets included."""
    parts = [f"{i.start}:{i.stop}" if isinstance(i, slice) else str(i) for i in index]
    return f"[{', '.join(parts)}]" if parts else ""


def draw_maps(
    figure: "Figure",
    tensor: torch.Tensor,
    form: Form,
    selection: Selection,
    per_map: bool,
    signed: bool,
    title: str,
) -> None:
    """Draw one page of channels as a mosaic, or a strip for tensors without maps."""
    if not form.is_maps or tensor.numel() == 0:
        draw_strip(figure, tensor[form.index(selection)], signed, title)
        return
    ax = figure.add_axes((0, 0, 1, 1))
    plot = plot_gradients if signed else plot_feature_maps
    # Pass all channels, not only those of the page, as they share one colour scale.
    maps = tensor[tuple(slice(None) if isinstance(i, slice) else i for i in form.index(selection))]
    plot(maps, page=selection.page, tiles=TILES, per_map=per_map, title=title, ax=ax)
    rows, columns = ax.get_images()[0].get_size()
    height = 0.87 * _WIDTH * min(max(rows / columns, 0.12), 1.5)  # no higher than the mosaic needs
    figure.set_size_inches(_WIDTH, height + 0.35)
    _arrange(ax, (0.005, 0.0, 0.87, height / (height + 0.35)))


def _arrange(ax: "Axes", box: tuple[float, float, float, float]) -> None:
    """Move a mosaic into a box of the figure; its colour bar, if there is one, goes with it."""
    ax.set_position(box)
    ax.set_anchor("NW")
    for bar in ax.child_axes:
        _label_shortly(bar)


def _label_shortly(bar: Any) -> None:
    """Label a colour bar at the edge of a figure so that nothing is cut: small and large numbers share a power of ten."""
    bar.tick_params(labelsize=8)
    bar.ticklabel_format(axis="y", scilimits=(-2, 3))
    bar.yaxis.get_offset_text().set_fontsize(8)


def draw_strip(figure: "Figure", values: torch.Tensor, signed: bool, title: str) -> None:
    """Draw activations without channels, such as those of a Transformer: one row per position."""
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import CenteredNorm

    if values.numel() <= 1:
        said = f"{real(values).item():g}" if values.numel() else f"empty: {shape_text(tuple(values.shape))}"
        figure.set_size_inches(_WIDTH, 1.2)
        figure.text(0.5, 0.4, said, ha="center", fontsize=12)
        figure.text(0.01, 0.85, title, fontsize=9)
        return
    matrix = real(values.detach()).cpu()
    matrix = matrix[None] if matrix.dim() == 1 else matrix.flatten(0, -2)
    # Subsample: there are not enough pixels for more.
    matrix = matrix[:: -(-len(matrix) // 1000), :: -(-matrix.shape[1] // 2000)]
    rows, columns = matrix.shape
    height = min(max(0.28 * rows, 0.5), 5.0)
    figure.set_size_inches(_WIDTH, height + 0.95)
    ax = figure.add_axes((0.09, 0.55 / (height + 0.95), 0.78, height / (height + 0.95)))
    data = np.ma.masked_invalid(matrix.numpy())
    signed = signed or bool((data < 0).any())
    image = ax.imshow(
        data,
        aspect="auto",
        cmap=colormaps[SIGNED if signed else UNSIGNED].with_extremes(bad="magenta"),
        norm=CenteredNorm() if signed else None,
        interpolation="nearest" if columns <= 600 else "auto",
    )
    odd = int(data.mask.sum()) if data.mask.any() else 0
    ax.set_title(title + (f" · {odd} NaN or Inf (magenta)" if odd else ""), fontsize=9, loc="left")
    ax.set_xlabel("unit", fontsize=8, labelpad=1)
    ax.set_ylabel("row", fontsize=8)
    ax.locator_params(axis="y", integer=True)
    ax.tick_params(labelsize=8)
    bar = figure.colorbar(
        image, cax=figure.add_axes((0.9, *ax.get_position().bounds[1:2], 0.02, ax.get_position().height))
    )
    _label_shortly(bar.ax)


def draw_channel(figure: "Figure", channel: torch.Tensor, beside: Any, signed: bool, title: str) -> None:
    """Draw one enlarged channel with the input beside it."""
    figure.set_size_inches(_WIDTH, 0.47 * _WIDTH)
    plot = plot_gradients if signed else plot_feature_maps
    left = figure.add_axes((0, 0, 1, 1))
    plot(channel, title=title, ax=left)
    _arrange(left, (0.005, 0.01, 0.41, 0.9))
    draw_input(figure.add_axes((0.55, 0.01, 0.41, 0.9), anchor="NW"), beside)


def draw_input(ax: "Axes", image: torch.Tensor | None) -> None:
    """Draw an image: three channels in colour, one in grey, anything else as feature maps."""
    ax.set_axis_off()
    if image is None:
        ax.text(0.5, 0.5, "no picture among the inputs", ha="center", transform=ax.transAxes)
        return
    data = real(image.detach()).cpu()
    if data.dim() == 3 and len(data) in (1, 3):
        data = data.nan_to_num(0, 0, 0)
        unit = (data - data.min()) / (data.max() - data.min()).clamp_min(1e-12)
        ax.imshow(unit.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"input {shape_text(tuple(image.shape))}", fontsize=9, loc="left")
    else:
        plot_feature_maps(image, title=f"input {shape_text(tuple(image.shape))}", ax=ax)


def picture_in(x: Any, sample: int) -> torch.Tensor | None:
    """Return the first image among the inputs of a model (of a batch the given sample), or None."""
    for _, tensor in named_tensors(x):
        if tensor.dim() == 4 and sample < len(tensor):
            return tensor[sample]
        if tensor.dim() == 3:
            return tensor
    return None


def widened(low: float, high: float) -> tuple[float, float]:
    """Return the range of a histogram: wider than that of the values where these are too close for bins between them."""
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    margin = max(0.5, 1e-3 * abs(low))
    return low - margin, high + margin


def draw_statistics(figure: "Figure", tensor: torch.Tensor, title: str) -> None:
    """Draw a histogram of all finite values, with zeros counted separately, and their mean."""
    import numpy as np

    values = real(tensor.detach()).cpu().flatten()
    finite = values[values.isfinite()].numpy()
    figure.set_size_inches(_WIDTH, 3.1)
    ax = figure.add_axes((0.1, 0.16, 0.86, 0.73))
    ax.set_title(title, fontsize=9, loc="left")
    if not len(finite):
        ax.text(0.5, 0.5, "no finite value", ha="center", transform=ax.transAxes)
        return
    rest = finite[finite != 0]
    if len(rest):
        low, high = float(rest.min()), float(rest.max())
        wide = widened(low, high)
        counts, edges = np.histogram(rest.astype(np.float64), bins=60, range=wide)
        ax.stairs(counts, edges, fill=True, color="#2166ac", label=f"not 0: {len(rest)}")
    zeros = len(finite) - len(rest)
    if zeros:
        ax.plot([0, 0], [0, zeros], color="#b35806", lw=3, label=f"0: {zeros}")
        ax.plot(0, zeros, "v", color="#b35806", ms=8)
    mean = float(finite.mean(dtype=np.float64))
    ax.axvline(mean, color="black", ls="--", lw=1, label=f"mean {mean:.4g}")
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.set_xlabel("value", fontsize=8, labelpad=1)
    ax.set_ylabel("how many", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False)
