"""Plots of feature maps, tokens and gradients: one mosaic or matrix for each tensor.

Every function returns the Axes it has drawn into and never calls ``plt.show``.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from hookedu.hooks.reading import Call, Layer
from hookedu.hooks.recording import Recording
from hookedu.hooks.tensors import named_tensors
from hookedu.language import Text
from hookedu.plots.layouts import layout_of
from hookedu.plots.mosaic import Mosaic, mosaic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.textpath import TextPath

_MOST = 12  # pictures in one figure


def plot_feature_maps(
    maps: Any,
    *,
    layout: str | None = None,
    sample: int | None = None,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    title: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot what a layer returned: feature maps as a mosaic, tokens as a matrix, one picture for each tensor.

    Colours run over viridis, from the smallest to the largest finite value of all channels, if no value is
    negative; otherwise over RdBu_r, symmetric about 0. NaN is drawn in magenta, +Inf in orange and -Inf in
    cyan; the title counts both. What has no picture (an empty tensor, a single number, more than 5 dimensions,
    values that cannot be read) gives a message in the Axes instead.

    Parameters
    ----------
    maps : Layer, Call, Recording, torch.Tensor, or a structure of tensors
        What to draw: a layer or call of a recording (its activation), all layers of a recording, or a tensor of any
        dtype. Each tensor of a tuple, a dict, a dataclass or another structure gets a picture of its own, with its
        place in the title, such as ``output[0]``; of more than 12, the first 12 do. A list of images or vectors of one
        shape is stacked first, and makes one mosaic.
    layout : str, optional
        What the dimensions are, one letter for each. N is the batch, of which one sample is drawn, and D the depth,
        of which the middle is. C (channels) makes tiles if two others are left, as A (attention heads) does: ``"NCHW"``,
        ``"NHWC"``, ``"NAQK"`` (queries and keys). Two letters make a matrix with labelled axes: ``"NTC"`` (tokens and
        features), ``"NCL"`` (a signal). By default it follows from the number of dimensions: ``"NCHW"``, ``"NCDHW"``;
        for what a layer returned ``"NTC"`` and ``"NC"``, unless the layer is one of those of ``torch.nn`` that say
        more, such as ``Conv2d``, ``LSTM`` or ``MultiheadAttention``; for a tensor that stands alone ``"CHW"`` and
        ``"HW"``, but also ``"NTC"`` and ``"NC"`` if ``sample`` is given.
    sample : int, optional
        Index into the batch, by default 0.
    tiles : int, default: 64
        Number of channels per page.
    page : int, default: 0
        Zero-based page of channels to draw.
    per_map : bool, default: False
        Scale the colours of each map separately. There is no colour bar then.
    title : str, optional
        Beginning of the title. Defaults to the name of the layer, if ``maps`` has one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created, of at most 20 by 30 inches.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the picture. Several pictures are inset Axes in it, its ``child_axes``.

    Raises
    ------
    ValueError
        If ``layout`` does not describe the tensor, ``tiles`` is less than 1, or a recorded layer was called
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

    Tokens of a Transformer, and an LSTM that returns three tensors:

    >>> tokens = torch.rand(4, 17, 32)  # samples, tokens, features
    >>> ax = plot_feature_maps(tokens, layout="NTC", sample=3)
    >>> ax.get_ylabel(), ax.get_xlabel()
    ('token', 'feature')
    >>> model = nn.LSTM(8, 5, batch_first=True)
    >>> with record(model, layers="") as rec:
    ...     output = model(torch.rand(4, 17, 8))
    >>> [one.get_title(loc="left") for one in plot_feature_maps(rec[""]).child_axes]
    ['output[0] · sample 0 of 4', 'output[1][0] · sample 0 of 4', 'output[1][1] · sample 0 of 4']
    """
    options = {"sample": sample, "tiles": tiles, "page": page, "per_map": per_map, "signed": None}
    return _draw_all(maps, "activation", layout, options, title, ax)


def plot_gradients(
    maps: Any,
    *,
    layout: str | None = None,
    sample: int | None = None,
    tiles: int = 64,
    page: int = 0,
    per_map: bool = False,
    title: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the gradient of one layer's output: of feature maps as a mosaic, of tokens as a matrix.

    The plot is that of :func:`plot_feature_maps`, but the colours are always RdBu_r, symmetric about 0.

    Parameters
    ----------
    maps : Layer, Call, Recording, torch.Tensor, or a structure of tensors
        What to draw: a layer or call of a recording made with ``gradients=True``, all its layers, or the gradient
        itself, as :func:`plot_feature_maps` takes it.
    layout : str, optional
        What the dimensions are, one letter for each; see :func:`plot_feature_maps`.
    sample : int, optional
        Index into the batch, by default 0.
    tiles : int, default: 64
        Number of channels per page.
    page : int, default: 0
        Zero-based page of channels to draw.
    per_map : bool, default: False
        Scale the colours of each map separately. There is no colour bar then.
    title : str, optional
        Beginning of the title. Defaults to "gradient of" and the name of the layer, if ``maps`` has one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created, of at most 20 by 30 inches.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the picture. Several pictures are inset Axes in it, its ``child_axes``.

    Raises
    ------
    ValueError
        If ``layout`` does not describe the tensor, ``tiles`` is less than 1, or a recorded layer was called
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
    options = {"sample": sample, "tiles": tiles, "page": page, "per_map": per_map, "signed": True}
    return _draw_all(maps, "gradient", layout, options, title, ax)


class _Piece(NamedTuple):
    """A tensor to draw, with what is known of it from where it was found."""

    name: str  # of the layer
    place: str  # in its output: "output[0]"
    tensor: torch.Tensor
    layout: str | None


def _pieces(value: Any, what: str) -> Iterator[_Piece | RuntimeError]:
    """Yield every tensor of a value; `what` is read from layers and calls, or the error that reading it raises."""
    if isinstance(value, Recording):
        missed = value.missed
        ran = [
            name for name in value if name not in missed
        ] or value  # if none did, reading the first says why
        for name in ran:
            calls = value[name].calls
            for one in calls if len(calls) > 1 else (value[name],):
                try:
                    yield from _pieces(one, what)
                except RuntimeError as error:
                    yield error
    elif isinstance(value, Layer | Call):
        layer = value if isinstance(value, Layer) else value.layer
        name = (layer.name or "(model)") + (f", call {value.number}" if isinstance(value, Call) else "")
        for place, tensor in named_tensors(getattr(value, what)):
            known = layout_of(tensor.dim(), layer.module, place)
            yield _Piece(name, f"output{place}" if place else "", tensor, known)
    elif isinstance(value, list) and _stackable(value):
        yield _Piece("", "", torch.stack([tensor.detach() for tensor in value]), None)
    else:  # a tensor alone or in a list may well be an image; in any other structure it came out of a model
        alone = isinstance(value, torch.Tensor | list)
        for place, tensor in named_tensors(value):
            if isinstance(tensor, torch.Tensor):  # and not the `Stats` of one
                yield _Piece("", place, tensor, None if alone else layout_of(tensor.dim(), None, place))


def _stackable(values: list[Any]) -> bool:
    plain = all(
        isinstance(value, torch.Tensor) and not value.is_nested and value.dim() <= 2 for value in values
    )
    return plain and len({value.shape for value in values}) == 1


def _draw_all(
    value: Any, what: str, layout: str | None, options: dict[str, Any], title: str | None, ax: "Axes | None"
) -> "Axes":
    """Draw each tensor of a value, several of them into inset Axes."""
    found = list(_pieces(value, what))
    pieces = [piece for piece in found if isinstance(piece, _Piece)]
    errors = [error for error in found if isinstance(error, Exception)]
    if not pieces:
        raise errors[0] if errors else TypeError(str(NO_TENSOR.format(got=type(value).__name__)))
    pictures, absent = [], []
    for piece in pieces[:_MOST]:
        fits = len(pieces) == 1 or len(layout or "") == piece.tensor.dim()
        try:
            pictures.append(
                mosaic(piece.tensor, layout=layout if layout and fits else piece.layout, **options)
            )
        except IndexError as error:  # of several tensors some may have no such sample or page
            pictures.append(str(error))
            absent.append(error)
    if len(absent) == len(pictures):
        raise absent[0]
    names = [
        f"gradient of {piece.name}" if piece.name and what == "gradient" else piece.name for piece in pieces
    ]
    notes = [f"first {_MOST} of {len(pieces):,} tensors"] if len(pieces) > _MOST else []
    notes += [f"without {what}: {len(errors):,} of {len({*names}) + len(errors):,} calls"] if errors else []
    shared = names[0] if len({*names}) == 1 else ""
    if len(pieces) == 1:
        return _draw(pictures[0], _joined(title or shared, pieces[0].place, *notes), ax)
    titles = [_joined("" if shared else name, piece.place) for name, piece in zip(names, pieces, strict=True)]
    return _draw_grid(pictures, titles, _joined(title or shared, *notes), ax)


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _draw_grid(pictures: list[Mosaic | str], titles: list[str], title: str, ax: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt

    columns = min(3, ceil(len(pictures) ** 0.5))
    rows = ceil(len(pictures) / columns)
    tall = min(max(map(_height, pictures)), 6.0)
    if ax is None:
        ax = plt.figure(figsize=(6.0 * columns, rows * (tall + 0.9) + 0.3)).add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    if title:
        ax.text(0.01, 0.995, title, fontsize=11, va="top", transform=ax.transAxes)
    whole, each = rows * (tall + 0.9) + 0.3, tall + 0.9
    for i, (picture, name) in enumerate(zip(pictures, titles, strict=False)):
        x, y = i % columns, rows - 1 - i // columns
        box = ((x + 0.1) / columns, (y * each + 0.45) / whole, 0.74 / columns, tall / whole)
        _draw(picture, name, ax.inset_axes(box))
    return ax


def _height(picture: Mosaic | str) -> float:
    """Return a height in inches for a picture of about 5 inches width."""
    height, width = (1.0, 3.0) if isinstance(picture, str) else picture.pixels.shape[:2]
    tall = 5.2 * min(max(height / width, 0.2), 1.4)
    return tall if isinstance(picture, str) or picture.axes is None else min(tall, 0.7 + 0.3 * height)


def _draw(picture: Mosaic | str, title: str, ax: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    matrix = not isinstance(picture, str) and picture.axes is not None
    if ax is None:
        tall, left, below = _height(picture), *((0.11, 0.45) if matrix else (0.01, 0.0))
        whole = tall + below + 0.4
        # The Axes are placed by hand because a layout engine would draw everything twice.
        box = (left, (below + 0.02) / whole, 0.84 - left, tall / whole)
        ax = plt.figure(figsize=(6.0, whole)).add_axes(box)
    ax.set_axis_off()
    if isinstance(picture, str):
        ax.text(0.5, 0.5, picture, ha="center", va="center", transform=ax.transAxes)
        if title:
            ax.set_title(title, fontsize=10)
        return ax
    height, width = picture.pixels.shape[:2]
    strip = matrix or not 0.1 < height / width < 10  # stretch it: a map of 1×1000 would be invisible
    extent = (-0.5, picture.size[1] - 0.5, picture.size[0] - 0.5, -0.5) if matrix else None
    aspect = "auto" if strip else "equal"
    ax.imshow(picture.pixels, interpolation="nearest", aspect=aspect, extent=extent)
    if picture.axes is not None:
        ax.set_axis_on()
        ax.tick_params(labelsize=8)
        ax.set_ylabel(picture.axes[0], fontsize=8)
        ax.set_xlabel(picture.axes[1], fontsize=8, labelpad=1)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True))
    if any(label for *_, label in picture.corners):
        _add_labels(ax, picture.corners)
    says = [title, picture.caption, picture.remarks]
    low, high = picture.low, picture.high
    if low is not None and high is not None:
        if isfinite(high - low):
            scale = ScalarMappable(Normalize(low, high), picture.cmap)
            bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.02, 0.05, 0.03, 0.9)))
            bar.ax.tick_params(labelsize=8)
        else:
            says.append(f"{low:g} to {high:g}")  # the arithmetic of a colour bar would overflow
    # A fixed y: otherwise every draw searches for free space above the Axes.
    ax.set_title(_joined(*says), fontsize=9, loc="left", y=1.0)
    return ax


def _add_labels(ax: "Axes", corners: list[tuple[float, float, str]]) -> None:
    """Add the labels of all tiles as one artist, as 64 Text objects take longer than the rest of the plot."""
    from matplotlib.collections import PathCollection

    labelled = [(x, y - 0.5, label) for x, y, label in corners]
    ax.add_collection(
        PathCollection(
            [_outline(label) for _, _, label in labelled],
            facecolors="#555555",
            linewidths=0,
            transform=ax.figure.dpi_scale_trans,
            offsets=[corner for *corner, _ in labelled],
            offset_transform=ax.transData,
            clip_on=False,  # those of the first row may stand out a little
        ),
        autolim=False,
    )


@lru_cache(4096)
def _outline(label: str) -> "TextPath":
    """Return the outline of a label in 7-point type, in inches, one point above its anchor."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 1 / 72), label, size=7 / 72)


NO_TENSOR = Text(
    zh="`{got}` 里没有可画的张量：请给张量、录制的层，或者含有张量的结构",
    en="there is no tensor to draw in a `{got}`: give a tensor, a recorded layer, or a structure that holds tensors",
)
