"""Tensors, Recordings and Timelines as pictures. Each function returns its axes and shows nothing by itself."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch

from hookedu.hooks.recording import Call, Layer, Recording
from hookedu.hooks.tensors import Stats, tensors_in
from hookedu.language import Text
from hookedu.plots.mosaic import Mosaic, mosaic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.textpath import TextPath

    from hookedu.hooks.timeline import Timeline


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
    """Draw the maps of one layer as one mosaic, a tile a channel.

    maps: a layer or a call of a Recording, a tensor of 0 to 5 dimensions and any dtype, or a list of maps of one
    shape. sample: which one of the batch. tiles, page: how many maps at once, and which of these pages (from 0).
    per_map: a scale for each map instead of one for the layer, which hides the colour bar.

    viridis from the smallest to the largest value where nothing is negative, else RdBu_r symmetric about 0. NaN is
    magenta, +Inf orange, -Inf cyan, and both are counted. What has no maps, such as an empty tensor, becomes a
    message in the picture. Raises ValueError for a list of mixed shapes, IndexError for a sample or page that is
    not there, TypeError for what holds no tensor.
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
    """Draw the gradient of one layer's output as one mosaic: as `plot_feature_maps`, always RdBu_r about 0.

    maps: a layer or a call of a Recording made with `gradients=True`, or the gradient itself.
    """
    tensor, name = _tensor_of(maps, "gradient")
    picture = mosaic(tensor, sample=sample, tiles=tiles, page=page, per_map=per_map, signed=True)
    return _draw(picture, title or (f"gradient of {name}" if name else None), ax)


def plot_stats(
    values: Recording | Mapping[str, torch.Tensor], *, of: str = "activation", ax: "Axes | None" = None
) -> "Axes":
    """Draw mean, standard deviation and range of each layer's values, one row a layer and call, first at the top.

    values: a Recording, or tensors by name, such as `{n: p.grad for n, p in model.named_parameters()}`. of:
    "activation" or "gradient" of a Recording. Layers with NaN or Inf are marked, those without values are said to
    have none. Raises ValueError where there is nothing to draw.
    """
    import matplotlib.pyplot as plt

    rows = _rows_of_stats(values, of)
    if not rows:
        raise ValueError(str(NOTHING_TO_DRAW))
    if ax is None:
        _, ax = plt.subplots(figsize=(7, max(1.6, 0.9 + 0.24 * len(rows))), layout="constrained")
    for y, (_, stats) in enumerate(rows):
        if stats is None or stats.count == stats.nan + stats.inf:
            ax.text(0.5, y, "no values", transform=ax.get_yaxis_transform(), va="center", color="#777777")
            continue
        std = stats.std if stats.std == stats.std else 0.0  # of one element there is none
        ax.plot([stats.min, stats.max], [y, y], color="#bbbbbb", lw=1, zorder=1)
        ax.plot([stats.mean - std, stats.mean + std], [y, y], color="#2166ac", lw=5, alpha=0.6, zorder=2)
        ax.plot(stats.mean, y, "o", color="#053061", ms=4, zorder=3)
    for y, (_, stats) in enumerate(rows):
        if stats is not None and stats.nan + stats.inf:
            ax.text(
                *(0.99, y, f"{stats.nan} NaN, {stats.inf} Inf"),
                **{"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center", "color": "#c51b7d"},
            )
    ax.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"{of}: mean (dot), ± std (bar), min to max (line)")
    ax.axvline(0, color="black", lw=0.5, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


_COLOURS = {
    "forward_pre": "#92c5de",
    "forward": "#2166ac",
    "output_grad": "#b2182b",
    "backward_pre": "#f4a582",
    "backward": "#d6604d",
    "input_grad": "#67001f",
    "param_grad": "#1b7837",
    "post_accumulate": "#a6dba0",
}


def plot_timeline(events: "Timeline", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a timeline: events from left to right, one row a module, so that forward climbs and backward descends.

    events: what `timeline` returned, or any list of events. Squares are parameters' events, beside their module.
    Raises ValueError where there are no events.
    """
    import matplotlib.pyplot as plt

    if not events:
        raise ValueError(str(NOTHING_TO_DRAW))
    rows = {path: y for y, path in enumerate(dict.fromkeys(event.path for event in events))}
    if ax is None:
        size = (min(14, 3 + 0.16 * len(events)), min(12, 1.5 + 0.3 * len(rows)))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    points = [(x, rows[event.path] + _beside(event)) for x, event in enumerate(events)]
    ax.plot(*zip(*points, strict=True), color="#dddddd", lw=0.8, zorder=1)
    for kind, colour in _COLOURS.items():
        at = [point for point, event in zip(points, events, strict=True) if event.kind == kind]
        if at:
            marker = "s" if kind in ("param_grad", "post_accumulate") else "o"
            ax.scatter(*zip(*at, strict=True), s=22, color=colour, marker=marker, label=kind, zorder=2)
    turn = next((x for x, event in enumerate(events) if event.kind not in ("forward_pre", "forward")), None)
    top = {"transform": ax.get_xaxis_transform(), "va": "bottom", "color": "#777777"}
    if turn != 0:
        ax.text(-0.5, 1.01, "forward", **top)
    if turn is not None:
        ax.axvline(turn - 0.5, color="#777777", lw=0.8, ls=":")
        ax.text(turn, 1.01, "backward", **top)
    shown = list(rows)[:: -(-len(rows) // 40)]  # more labels than these would lie on one another
    ax.set_yticks([rows[path] for path in shown], [path or "(model)" for path in shown], fontsize=8)
    ax.set(xlabel="order of events", ylim=(-0.7, len(rows) - 0.3))
    ax.xaxis.get_major_locator().set_params(integer=True)  # events are counted
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _beside(event: Any) -> float:
    """Parameters' events stand a little below their module's row."""
    return -0.3 if event.kind in ("param_grad", "post_accumulate") else 0.0


def _tensor_of(value: Any, what: str) -> tuple[torch.Tensor, str]:
    """One tensor to draw and its name, out of everything that has one."""
    name = ""
    if isinstance(value, Layer | Call):
        layer = value if isinstance(value, Layer) else value.layer
        name = (layer.name or "(model)") + (f", call {value.number}" if isinstance(value, Call) else "")
        value = getattr(value, what)
    if isinstance(value, torch.Tensor):
        return value, name
    found = list(tensors_in(value))
    if not found:
        raise TypeError(str(NO_TENSOR.format(got=type(value).__name__)))
    if isinstance(value, Sequence) and not hasattr(value, "_fields"):
        shapes = sorted({tuple(tensor.shape) for tensor in found})
        if len(shapes) > 1:
            raise ValueError(str(MIXED_SHAPES.format(shapes=", ".join(map(str, shapes)))))
        if len(found) > 1:
            return torch.stack([tensor.detach() for tensor in found]), name
    return found[0], name


def _rows_of_stats(values: Any, of: str) -> list[tuple[str, Stats | None]]:
    if isinstance(values, Recording):
        rows, missed = [], values.missed
        for name in values:
            calls = [] if name in missed else values[name].calls
            for call in calls:
                label = (name or "(model)") + (f" #{call.number}" if len(calls) > 1 else "")
                try:
                    found = [call.stats(of)]
                except RuntimeError:  # this call has no gradient: the row says so
                    found = [None]
                while found and isinstance(found[0], tuple | list | dict):
                    found = list(found[0].values() if isinstance(found[0], dict) else found[0])
                rows.append((label, found[0] if found and isinstance(found[0], Stats) else None))
        return rows
    if not isinstance(values, Mapping):
        raise TypeError(str(NO_TENSOR.format(got=type(values).__name__)))
    return [(name, None if tensor is None else Stats(tensor)) for name, tensor in values.items()]


def _draw(picture: Mosaic | str, title: str | None, ax: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if ax is None:
        height, width = (1.0, 3.0) if isinstance(picture, str) else picture.pixels.shape[:2]
        tall = 5.2 * min(max(height / width, 0.2), 1.4)
        # Placed by hand: a layout engine would draw everything twice.
        ax = plt.figure(figsize=(6.0, tall + 0.4)).add_axes((0.01, 0.01, 0.83, tall / (tall + 0.4)))
    ax.set_axis_off()
    if isinstance(picture, str):
        ax.text(0.5, 0.5, picture, ha="center", va="center", transform=ax.transAxes)
        if title:
            ax.set_title(title, fontsize=10)
        return ax
    height, width = picture.pixels.shape[:2]
    strip = not 0.1 < height / width < 10  # one map of 1×1000, say: stretched, or nobody would see it
    ax.imshow(picture.pixels, interpolation="nearest", aspect="auto" if strip else "equal")
    _add_labels(ax, picture.corners)
    says = [part for part in (title, picture.caption, picture.remarks) if part]
    if picture.low is not None and not isfinite(picture.high - picture.low):
        says.append(f"{picture.low:g} to {picture.high:g}")  # too wide for a colour bar's arithmetic
    elif picture.low is not None:
        scale = ScalarMappable(Normalize(picture.low, picture.high), picture.cmap)
        bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.02, 0.05, 0.03, 0.9)))
        bar.ax.tick_params(labelsize=8)
    ax.set_title(" · ".join(says), fontsize=9, loc="left", y=1.0)  # y: or every drawing looks for room above
    return ax


def _add_labels(ax: "Axes", corners: list[tuple[float, float, str]]) -> None:
    """The labels of all tiles as one artist: 64 Text objects take longer than the rest of the picture."""
    from matplotlib.collections import PathCollection

    labelled = [(x, y - 0.5, label) for x, y, label in corners if label]
    ax.add_collection(
        PathCollection(
            [_outline(label) for _, _, label in labelled],
            **{"facecolors": "#555555", "linewidths": 0, "transform": ax.figure.dpi_scale_trans},
            **{"offsets": [corner for *corner, _ in labelled], "offset_transform": ax.transData},
        ),
        autolim=False,
    )


@lru_cache(4096)
def _outline(label: str) -> "TextPath":
    """A label in 6-point type, in inches, a point above its place."""
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
NOTHING_TO_DRAW = Text(zh="没有可画的内容", en="there is nothing to draw")
