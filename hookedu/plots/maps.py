"""Plots of feature maps and of gradients: one mosaic for each layer.

Every function returns the Axes it has drawn into and never calls ``plt.show``.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch

from hookedu.hooks.reading import Call, Layer
from hookedu.hooks.tensors import tensors_in
from hookedu.language import Text
from hookedu.plots.mosaic import Mosaic, mosaic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.textpath import TextPath


def plot_feature_maps(
    maps: Any,
    *,
    sample: int = 0,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    title: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the feature maps of one layer as a mosaic with one tile per channel.

    Colours run over viridis, from the smallest to the largest finite value of all channels, if no value is
    negative; otherwise over RdBu_r, symmetric about 0. NaN is drawn in magenta, +Inf in orange and -Inf in
    cyan; the title counts both. Data without maps (an empty tensor, a single number, more than 5 dimensions)
    gives a message in the Axes instead of an image.

    Parameters
    ----------
    maps : Layer, Call, torch.Tensor or sequence of torch.Tensor
        What to draw: a layer or call of a recording (its activation), or a tensor of any dtype and 0 to 5
        dimensions. ``(N, C, H, W)`` shows the C maps of one sample, ``(C, H, W)`` shows C maps, ``(H, W)``
        and ``(L,)`` show one map; of ``(N, C, D, H, W)`` the middle slice along D is shown. A sequence of
        tensors of one shape is stacked first. Of any other structure, and of a recorded one, the first tensor is
        drawn.
    sample : int, default: 0
        Index into the batch, for tensors of 4 or 5 dimensions.
    tiles : int, default: 64
        Number of channels per page.
    page : int, default: 0
        Zero-based page of channels to draw.
    per_map : bool, default: False
        Scale the colours of each map separately. There is no colour bar then.
    title : str, optional
        Beginning of the title. Defaults to the name of the layer, if ``maps`` has one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the mosaic.

    Raises
    ------
    ValueError
        If the tensors of a sequence differ in shape, ``tiles`` is less than 1, or a recorded layer was called
        more than once (give one of its ``calls`` then).
    IndexError
        If ``sample`` or ``page`` does not exist.
    TypeError
        If ``maps`` holds no tensor.
    RuntimeError
        If a recorded layer has no activation, for example because it was never called.

    See Also
    --------
    plot_gradients : The same plot for gradients.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import plot_feature_maps, record
    >>> model = nn.Sequential(nn.Conv2d(3, 16, kernel_size=3), nn.ReLU())
    >>> with record(model, layers="1") as rec:
    ...     output = model(torch.rand(2, 3, 8, 8))
    >>> ax = plot_feature_maps(rec["1"], sample=1)
    >>> ax.get_title(loc="left")
    '1 · 16 of 16 · sample 1 of 2'
    """
    tensor, name = _tensor_of(maps, "activation")
    return _draw(mosaic(tensor, sample=sample, tiles=tiles, page=page, per_map=per_map), title or name, ax)


def plot_gradients(
    maps: Any,
    *,
    sample: int = 0,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    title: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the gradient of one layer's output as a mosaic with one tile per channel.

    The plot is that of :func:`plot_feature_maps`, but the colours are always RdBu_r, symmetric about 0.

    Parameters
    ----------
    maps : Layer, Call, torch.Tensor or sequence of torch.Tensor
        What to draw: a layer or call of a recording made with ``gradients=True``, or the gradient itself, of
        the shapes that :func:`plot_feature_maps` takes.
    sample : int, default: 0
        Index into the batch, for tensors of 4 or 5 dimensions.
    tiles : int, default: 64
        Number of channels per page.
    page : int, default: 0
        Zero-based page of channels to draw.
    per_map : bool, default: False
        Scale the colours of each map separately. There is no colour bar then.
    title : str, optional
        Beginning of the title. Defaults to "gradient of" and the name of the layer, if ``maps`` has one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the mosaic.

    Raises
    ------
    ValueError
        If the tensors of a sequence differ in shape, ``tiles`` is less than 1, or a recorded layer was called
        more than once (give one of its ``calls`` then).
    IndexError
        If ``sample`` or ``page`` does not exist.
    TypeError
        If ``maps`` holds no tensor.
    RuntimeError
        If a recorded layer has no gradient. The message says why: ``backward`` has not run yet, gradients
        were not recorded, or backward never reached the layer's output.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import plot_gradients, record
    >>> model = nn.Sequential(nn.Conv2d(3, 16, kernel_size=3), nn.ReLU())
    >>> with record(model, layers="0", gradients=True) as rec:
    ...     model(torch.rand(1, 3, 8, 8)).sum().backward()
    >>> ax = plot_gradients(rec["0"])
    >>> ax.get_title(loc="left")
    'gradient of 0 · 16 of 16'
    """
    tensor, name = _tensor_of(maps, "gradient")
    picture = mosaic(tensor, sample=sample, tiles=tiles, page=page, per_map=per_map, signed=True)
    return _draw(picture, title or (f"gradient of {name}" if name else None), ax)


def _tensor_of(value: Any, what: str) -> tuple[torch.Tensor, str]:
    """Return the tensor to draw and its name, "" if it has none."""
    name, recorded = "", isinstance(value, Layer | Call)
    if isinstance(value, Layer | Call):
        layer = value if isinstance(value, Layer) else value.layer
        name = (layer.name or "(model)") + (f", call {value.number}" if isinstance(value, Call) else "")
        value = getattr(value, what)
    if isinstance(value, torch.Tensor):
        return value, name
    found = list(tensors_in(value))
    if not found:
        raise TypeError(str(NO_TENSOR.format(got=type(value).__name__)))
    # The tensors of one output are different things, even of one shape, such as the states of an LSTM.
    if isinstance(value, Sequence) and not hasattr(value, "_fields") and not recorded:
        shapes = sorted({tuple(tensor.shape) for tensor in found})
        if len(shapes) > 1:
            raise ValueError(str(MIXED_SHAPES.format(shapes=", ".join(map(str, shapes)))))
        if len(found) > 1:
            return torch.stack([tensor.detach() for tensor in found]), name
    return found[0], name


def _draw(picture: Mosaic | str, title: str | None, ax: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if ax is None:
        height, width = (1.0, 3.0) if isinstance(picture, str) else picture.pixels.shape[:2]
        tall = 5.2 * min(max(height / width, 0.2), 1.4)
        # The Axes are placed by hand because a layout engine would draw everything twice.
        ax = plt.figure(figsize=(6.0, tall + 0.4)).add_axes((0.01, 0.01, 0.83, tall / (tall + 0.4)))
    ax.set_axis_off()
    if isinstance(picture, str):
        ax.text(0.5, 0.5, picture, ha="center", va="center", transform=ax.transAxes)
        if title:
            ax.set_title(title, fontsize=10)
        return ax
    height, width = picture.pixels.shape[:2]
    strip = not 0.1 < height / width < 10  # stretch it: a map of 1×1000 would be invisible
    ax.imshow(picture.pixels, interpolation="nearest", aspect="auto" if strip else "equal")
    _add_labels(ax, picture.corners)
    says = [part for part in (title, picture.caption, picture.remarks) if part]
    low, high = picture.low, picture.high
    if low is not None and high is not None:
        if isfinite(high - low):
            scale = ScalarMappable(Normalize(low, high), picture.cmap)
            bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.02, 0.05, 0.03, 0.9)))
            bar.ax.tick_params(labelsize=8)
        else:
            says.append(f"{low:g} to {high:g}")  # the arithmetic of a colour bar would overflow
    # A fixed y: otherwise every draw searches for free space above the Axes.
    ax.set_title(" · ".join(says), fontsize=9, loc="left", y=1.0)
    return ax


def _add_labels(ax: "Axes", corners: list[tuple[float, float, str]]) -> None:
    """Add the labels of all tiles as one artist, as 64 Text objects take longer than the rest of the plot."""
    from matplotlib.collections import PathCollection

    labelled = [(x, y - 0.5, label) for x, y, label in corners if label]
    ax.add_collection(
        PathCollection(
            [_outline(label) for _, _, label in labelled],
            facecolors="#555555",
            linewidths=0,
            transform=ax.figure.dpi_scale_trans,
            offsets=[corner for *corner, _ in labelled],
            offset_transform=ax.transData,
        ),
        autolim=False,
    )


@lru_cache(4096)
def _outline(label: str) -> "TextPath":
    """Return the outline of a label in 6-point type, in inches, one point above its anchor."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 1 / 72), label, size=6 / 72)


NO_TENSOR = Text(
    zh="`{got}` 里没有可画的张量：请给张量、录制的层，或者形状相同的特征图列表",
    en="there is no tensor to draw in a `{got}`: give a tensor, a recorded layer, or a list of maps of one shape",
)


MIXED_SHAPES = Text(
    zh="列表里的特征图形状不同：{shapes}；请把形状相同的画在一起",
    en="the maps in the list have different shapes: {shapes}; draw those of one shape together",
)
