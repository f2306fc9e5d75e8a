"""Plots of a whole run: statistics with one row per layer, and hook events in order.

Every function returns the Axes it has drawn into and never calls ``plt.show``.
"""

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

import torch

from hookedu.hooks.reading import stats_of
from hookedu.hooks.recording import Recording
from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import named_tensors
from hookedu.language import Text
from hookedu.plots.maps import NO_TENSOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hookedu.hooks.timeline import Timeline


def plot_stats(
    values: Recording | Mapping[str, Any],
    *,
    of: str = "activation",
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot mean, standard deviation and range of each layer's values.

    There is one row per call of a layer and tensor in it, the first at the top: a dot for the mean, a bar for one
    standard deviation to either side, a line from the minimum to the maximum. All of them are over the finite
    values; NaN and Inf are counted beside the row, and numbers beyond 1e300 are drawn at 1e300. Layers that never
    ran have no row. Of more than 100 rows the first 100 are drawn; the label of the x axis says so, and how many
    calls have no such values. Values that ``record`` dropped because of ``max_bytes`` are drawn as well, from the
    statistics that remain.

    Parameters
    ----------
    values : Recording or mapping of str to torch.Tensor
        A recording, or tensors or structures of them by name, such as ``rec.activations`` or ``{n: p.grad for n, p in
        model.named_parameters()}``. A value without a tensor, such as None, gives a row without values.
    of : {"activation", "gradient", "input"}, default: "activation"
        Which values of a recording to plot. The tensors of a nested structure have a row each, with their place in
        it: "lstm[1][0]". For a mapping this is only the label of the x axis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the plot.

    Raises
    ------
    ValueError
        If there is nothing to draw, or ``of`` is not one of the three kinds of values of a recording.
    TypeError
        If ``values`` is neither a recording nor a mapping.
    RuntimeError
        If the recording is closed, or no call has such values; the message says why.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import plot_stats, record
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> with record(model, layers=[nn.Linear, nn.ReLU]) as rec:
    ...     output = model(torch.rand(16, 4))
    >>> ax = plot_stats(rec)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1', '2']

    The gradients of all parameters after a backward pass:

    >>> output.sum().backward()
    >>> ax = plot_stats({name: p.grad for name, p in model.named_parameters()}, of="gradient")
    """
    import matplotlib.pyplot as plt

    found, without = _found(values, of)
    if not found:
        raise ValueError(str(NOTHING_TO_DRAW))
    rows = [(name, _stats(tensor)) for name, tensor in found[:_MAX_ROWS]]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, max(1.6, 0.9 + 0.24 * len(rows))), layout="constrained")
    for y, (_, stats) in enumerate(rows):
        if stats is None or isnan(stats.mean):
            ax.text(0.5, y, "no values", transform=ax.get_yaxis_transform(), va="center", color="#595959")
            continue
        std = stats.std if stats.std == stats.std else 0.0  # NaN for a single element
        ax.plot(_drawable(stats.min, stats.max), [y, y], color="#767676", lw=1, zorder=1)
        spread = _drawable(stats.mean - std, stats.mean + std)
        ax.plot(spread, [y, y], color="#2166ac", lw=5, alpha=0.6, zorder=2)
        ax.plot(_drawable(stats.mean), [y], "o", color="#053061", ms=4, zorder=3)
    for y, (_, stats) in enumerate(rows):
        if stats is not None and stats.nan + stats.inf:
            ax.text(
                0.99,
                y,
                f"{stats.nan} NaN, {stats.inf} Inf",
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                color="#c51b7d",
            )
    ax.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    says = [f"{of}: mean (dot), ± std (bar), min to max (line)"]
    says += [f"first {len(rows)} of {len(found):,} rows"] if len(found) > len(rows) else []
    says += [f"without {of}: {without[0]:,} of {without[1]:,} calls"] if without[0] else []
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="\n".join(says))
    ax.axvline(0, color="black", lw=0.5, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


_MAX_ROWS = 100
_LARGEST = 1e300  # matplotlib's own arithmetic on limits and ticks overflows a little above


def _drawable(*numbers: float) -> list[float]:
    return [min(max(number, -_LARGEST), _LARGEST) for number in numbers]


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
# The light ones do not stand out from white without an edge: that of the dark colour beside them.
_EDGES = {"forward_pre": "forward", "backward_pre": "backward", "post_accumulate": "param_grad"}


def plot_timeline(events: "Timeline", *, ax: "Axes | None" = None) -> "Axes":
    """Plot the hook events of a run against the modules they belong to.

    Events run from left to right in the order in which they fired, with one row per module, so that the
    forward pass climbs and the backward pass descends. Colours stand for the kinds of hooks. Squares are the
    events of parameters; they lie slightly below the row of their module.

    Parameters
    ----------
    events : Timeline
        The result of :func:`timeline`, or any list of its events.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the plot.

    Raises
    ------
    ValueError
        If there are no events.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import plot_timeline, timeline
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> ax = plot_timeline(timeline(model, torch.rand(1, 4)))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['(model)', '0', '1', '2']
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
            edge = _COLOURS[_EDGES.get(kind, kind)]
            ax.scatter(
                *zip(*at, strict=True), s=22, c=colour, ec=edge, lw=0.9, marker=marker, label=kind, zorder=2
            )
    turn = next((x for x, event in enumerate(events) if event.kind not in ("forward_pre", "forward")), None)
    top = {"transform": ax.get_xaxis_transform(), "va": "bottom", "color": "#595959"}
    if turn != 0:
        ax.text(-0.5, 1.01, "forward", **top)
    if turn is not None:
        ax.axvline(turn - 0.5, color="#595959", lw=0.8, ls=":")
        ax.text(turn, 1.01, "backward", **top)
    shown = list(rows)[:: -(-len(rows) // 40)]  # more than 40 labels would overlap
    ax.set_yticks([rows[path] for path in shown], [path or "(model)" for path in shown], fontsize=8)
    ax.set(xlabel="order of events", ylim=(-0.7, len(rows) - 0.3))
    ax.locator_params(axis="x", integer=True)  # the axis counts events
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _beside(event: Any) -> float:
    """Return the vertical offset of an event: parameters lie slightly below their module's row."""
    return -0.3 if event.kind in ("param_grad", "post_accumulate") else 0.0


def _found(values: Any, of: str) -> tuple[list[tuple[str, torch.Tensor | None]], tuple[int, int]]:
    """Return the tensors to describe, by name, and how many calls of a recording have none, out of how many."""
    if not isinstance(values, Recording):
        if not isinstance(values, Mapping):
            raise TypeError(str(NO_TENSOR.format(got=type(values).__name__)))
        tensors = {name: [*named_tensors(value)] or [("", None)] for name, value in values.items()}
        return [(f"{name}{place}", tensor) for name, found in tensors.items() for place, tensor in found], (
            0,
            0,
        )
    rows, errors, n_calls, missed = [], [], 0, values.missed
    for name in [
        name for name in values if name not in missed
    ] or values:  # if none ran, reading the first says why
        calls = values[name].calls
        n_calls += len(calls)
        for call in calls:
            label = (name or "(model)") + (f" #{call.number}" if len(calls) > 1 else "")
            try:
                tensors = [*named_tensors(call.described(of))]
            except RuntimeError as error:  # this call has no such values
                errors.append(error)
            else:
                rows += [(label + place, tensor) for place, tensor in tensors] or [(label, None)]
    if errors and not rows:
        raise errors[0]  # it says what to record, or to call, so that there are such values
    return rows, (len(errors), n_calls)


def _stats(tensor: torch.Tensor | None) -> Stats | None:
    """Return the statistics of a tensor, or None if it has none, such as a sparse one too large to be made dense."""
    try:
        return None if tensor is None else stats_of(tensor)
    except Exception:
        return None


NOTHING_TO_DRAW = Text(zh="没有可画的内容", en="there is nothing to draw")
