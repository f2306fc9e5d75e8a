"""Plots of small autograd graphs and their gradients, and of tensors that share memory."""

from collections.abc import Callable, Mapping
from itertools import islice
from math import dist
from typing import TYPE_CHECKING

import torch

from hookedu.hooks.reach import undone
from hookedu.hooks.tensors import shape_text, sizes
from hookedu.plots.flows import brought
from hookedu.plots.structure import arrange, edges_behind, longest, named_tensors_of
from hookedu.plots.summaries import NOTHING_TO_DRAW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Every colour of text and lines has a contrast of at least 4.5 to white: WCAG's level AA.
KEPT, CAUGHT, QUIET, FORWARD, BACKWARD, FRAME = (
    "#1b7837",
    "#b35806",
    "#595959",
    "#595959",
    "#762a83",
    "#333333",
)
_NAMES = 36  # as many as fit into 30 inches
_LETTER, _ROW = 0.085, 1.2  # inches: the width of a letter in 10-point type, the distance of two rows
_SLIM, _WIDE = 0.12, 0.85  # inches by which arrows leave the straight line: between neighbours, around a box

Position = tuple[float, float]  # inches to the right and down


def plot_graph(
    output: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the autograd graph behind a tensor, with one box per named tensor.

    Grey arrows, from left to right, are the forward direction. Leaves have a double frame. Above each box stands
    the operation that made the tensor, below it the gradient: kept in ``.grad`` (leaves, and tensors after
    ``retain_grad()``), seen by a hook, or not kept. If there is a gradient, purple arrows go back, each with what
    it brings to the tensor at its end; several of them add up to the gradient of that tensor.

    Parameters
    ----------
    output : torch.Tensor
        The tensor from which backward starts. It must be among ``tensors``.
    tensors : mapping of str to torch.Tensor
        The tensors to show, by name. Operations between them are joined into one arrow; tensors that are not
        part of the graph of ``output`` are left out. Of a graph with more than 8 tensors in a chain, or more than 24
        side by side, those nearest to ``output`` are shown, and a note says how many.
    gradients : mapping of str to torch.Tensor, optional
        Gradients that hooks have seen, by the name of their tensor.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the plot.

    Notes
    -----
    What an arrow brings is found from the graph and from the gradients that are known, without running a hook. Where
    backward has freed the graph and several arrows end at one tensor, that may be impossible, and they stay without a
    number; ``backward(retain_graph=True)`` helps. ``.grad`` is taken to hold the gradient of a single backward pass.

    Raises
    ------
    TypeError
        If ``output`` is no tensor, or ``tensors`` no mapping from names to tensors.
    ValueError
        If ``output`` has no ``grad_fn``, or is not among ``tensors``.

    Examples
    --------
    >>> import torch
    >>> from hookedu import plot_graph
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> a = x * 3
    >>> y = a**2
    >>> seen = {}
    >>> handle = a.register_hook(lambda grad: seen.update(a=grad))
    >>> y.backward()
    >>> ax = plot_graph(y, {"x": x, "a": a, "y": y}, gradients=seen)
    >>> [text.get_text() for text in ax.texts if "grad" in text.get_text() or "hook" in text.get_text()]
    ['.grad = 36', 'hook saw 12']
    """
    import matplotlib.pyplot as plt

    return _plot(output, tensors, gradients or {}, ax, plt.figure)


def graph_figure(
    output: torch.Tensor, tensors: Mapping[str, torch.Tensor], gradients: Mapping[str, torch.Tensor]
) -> "Figure":
    """Return what plot_graph plots as a figure outside pyplot, so that no notebook shows it by itself."""
    from matplotlib.figure import Figure

    figures: list[Figure] = []

    def new(figsize: tuple[float, float]) -> Figure:
        figures.append(Figure(figsize=figsize))
        return figures[0]

    _plot(output, tensors, gradients, None, new)
    return figures[0]


def _plot(
    output: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor],
    ax: "Axes | None",
    new: "Callable[..., Figure]",
) -> "Axes":
    """Plot a graph into the Axes, or into a figure that `new` makes."""
    tensors = named_tensors_of(output, "`output`", tensors)
    edges, found = edges_behind(output, tensors)
    behind = longest([(target, source) for source, target in edges], found)
    with undone():  # what is checkpointed runs again when its nodes are applied
        flows = brought(edges, sorted(found, key=behind.__getitem__), tensors, gradients)
    edges, places = arrange(edges, found, behind)
    words = {name: _gradient(tensors[name], gradients.get(name)) for name in found}
    went_back = any(colour != QUIET for _, colour in words.values())
    widths = {name: len(_label(name, tensors[name])) * _LETTER for name in places}
    numbers = {edge: _number(flows.get(edge)) for edge in edges}
    below = max(len(words[name][0]) for name in places) * _LETTER
    between = [(widths[a] + widths[b]) / 2 + len(numbers[a, b]) * _LETTER for a, b in edges]
    columns = 1 + max(column for column, _ in places.values())
    # The distance of two columns: room for boxes, numbers, and the texts below the boxes.
    step = min(max(2.0, below + 0.2, *(width + 0.75 for width in between)), 20 / columns)
    positions = {name: (column * step, row * _ROW) for name, (column, row) in places.items()}
    title = (
        f"{len(places)} of {len(found):,} tensors, nearest to the output" if len(places) < len(found) else ""
    )
    bends = {edge: _bend(*edge, positions, step) for edge in edges}
    beside = min(max(below, *widths.values()) / 2 + 0.2, step / 2)
    ax = _page(ax, new, positions, beside, max(bends.values(), default=0.0), title)
    boxes = {name: _draw_tensor(ax, positions[name], name, tensors[name], *words[name]) for name in positions}
    for source, target in edges:
        bend = bends[source, target]
        _arrow(ax, boxes[source], boxes[target], FORWARD, bend)
        if went_back and words[source][0] != ".grad = None":
            _arrow(ax, boxes[target], boxes[source], BACKWARD, bend)
            if number := numbers[source, target]:
                at = _on_arrow(boxes[target], boxes[source], bend, number)
                _small(ax, at, number, BACKWARD, weight="bold")
    return ax


def _gradient(tensor: torch.Tensor, caught: torch.Tensor | None) -> tuple[str, str]:
    """Return what is known of a tensor's gradient, and in which colour to say it."""
    if (tensor.is_leaf or tensor.retains_grad) and (tensor.grad is not None or caught is None):
        return (".grad = None", QUIET) if tensor.grad is None else (f".grad = {_short(tensor.grad)}", KEPT)
    return ("not kept", QUIET) if caught is None else (f"hook saw {_short(caught)}", CAUGHT)


def _bend(source: str, target: str, positions: Mapping[str, Position], step: float) -> float:
    """Return by how much an arrow leaves the straight line: more if a box stands in its way."""
    (x0, y0), (x1, y1) = positions[source], positions[target]
    for x, y in positions.values():
        on_line = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        if x0 + step / 2 < x < x1 - step / 2 and abs(y - on_line) < _ROW / 2:
            return _WIDE
    return _SLIM


def _page(
    ax: "Axes | None",
    new: "Callable[..., Figure]",
    positions: Mapping[str, Position],
    beside: float,
    bend: float,
    title: str,
) -> "Axes":
    """Prepare the Axes: one unit is one inch, where there is room for that."""
    xs, ys = zip(*positions.values(), strict=True)
    left, right = min(xs) - beside, max(xs) + beside
    top, bottom = min(ys) - max(0.55, bend + 0.1), max(ys) + max(0.5, bend + 0.15)
    if ax is None:
        above = 0.3 if title else 0.0
        figure = new(figsize=(right - left, bottom - top + above))
        ax = figure.add_axes((0, 0, 1, (bottom - top) / (bottom - top + above)))
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=9, loc="left")
    return ax


def _draw_tensor(
    ax: "Axes", position: Position, name: str, tensor: torch.Tensor, said: str, colour: str
) -> "Text":
    """Draw a tensor and the texts above and below it; return its box."""
    operation = "leaf"
    if tensor.grad_fn is not None:
        operation = tensor.grad_fn.name().removesuffix("0").removesuffix("Backward").lower()
    label = _label(name, tensor)
    # Of a leaf, the outer frame comes first, so that the inner one is on top.
    box = _box(ax, position, label, pad=0.65 if tensor.is_leaf else 0.45)
    if tensor.is_leaf:
        _box(ax, position, label, pad=0.45)
    x, y = position
    _small(ax, (x, y - 0.36), operation, QUIET)
    _small(ax, (x, y + 0.38), said, colour, weight="bold")
    return box


def _box(
    ax: "Axes", position: Position, label: str, pad: float, style: str = "round", **frame: object
) -> "Text":
    frame = {"boxstyle": f"{style},pad={pad}", "facecolor": "white", "edgecolor": FRAME, **frame}
    return ax.text(*position, label, ha="center", va="center", bbox=frame)


def _small(ax: "Axes", position: Position, said: str, colour: str, weight: str = "normal") -> None:
    ax.text(
        *position,
        said,
        ha="center",
        va="center",
        fontsize=9,
        color=colour,
        weight=weight,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _arrow(ax: "Axes", start: "Text", end: "Text", colour: str, bend: float = 0.0) -> None:
    """Draw an arrow from the frame of one box to that of another, `bend` inches to its left at most."""
    from matplotlib.patches import FancyArrowPatch

    here, there = start.get_position(), end.get_position()
    ax.add_patch(
        FancyArrowPatch(
            here,
            there,
            arrowstyle="-|>",
            mutation_scale=11,
            color=colour,
            connectionstyle=f"arc3,rad={-2 * bend / dist(here, there)}",
            patchA=start.get_bbox_patch(),
            patchB=end.get_bbox_patch(),
            shrinkA=0,
            shrinkB=0,
            zorder=4,  # after the boxes, as matplotlib learns where these end when it draws them
        )
    )


def _on_arrow(start: "Text", end: "Text", bend: float, number: str) -> Position:
    """Return where on an arrow that goes back a number stands: nearer to its end, as it says what the end gets."""
    (x0, y0), (x1, y1) = start.get_position(), end.get_position()
    half = (len(number) * _LETTER / 2 + 0.25) / abs(x1 - x0)
    # The shares of the way at which a number would touch one box and the other.
    first, last = (len(box.get_text()) * _LETTER / 2 / abs(x1 - x0) for box in (start, end))
    t = min(0.6, max(1 - last - half, (1 + first - last) / 2))
    rad = -2 * bend / dist((x0, y0), (x1, y1))
    middle = (x0 + x1) / 2 - rad * (y1 - y0), (y0 + y1) / 2 + rad * (x1 - x0)  # y counts downwards
    x, y = (
        (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c
        for a, b, c in zip((x0, y0), middle, (x1, y1), strict=True)
    )
    return x, y


def _label(name: str, tensor: torch.Tensor) -> str:
    return f"{name} = {_short(tensor)}"


def _short(tensor: torch.Tensor) -> str:
    """Format a tensor to fit into a box: as a number, a short list, or a shape."""
    return _number(tensor) or shape_text(sizes(tensor))


def _number(tensor: torch.Tensor | None) -> str:
    """Format a tensor as a number or a short list; "" if it has more of them, or none that can be read."""
    try:
        if tensor is not None and tensor.numel() == 1:
            return f"{tensor.item():g}"
        if tensor is not None and tensor.dim() == 1 and tensor.numel() <= 4:
            return "[" + ", ".join(f"{v:g}" for v in tensor.tolist()) + "]"
    except Exception:  # such as on the meta device: no values
        pass
    return ""


def plot_sharing(gradients: Mapping[str, torch.Tensor], ax: "Axes | None" = None) -> "Axes":
    """Plot which tensors share memory.

    Names are at the left, one box per storage at the right. Names whose tensors use the same storage, whether
    they are the same object or views of each other, point to the same box. Beside each box stands whether it
    is shared and how often it has been written to in place (``_version``).

    Parameters
    ----------
    gradients : mapping of str to torch.Tensor
        The tensors by name, usually gradients that hooks have seen. Of more than 36 the first 36 are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes that hold the plot.

    Raises
    ------
    ValueError
        If ``gradients`` is empty.

    Examples
    --------
    >>> import torch
    >>> from hookedu import plot_sharing
    >>> grad = torch.ones(2)
    >>> ax = plot_sharing({"grad": grad, "view": grad.view(2, 1), "copy": grad.clone()})
    >>> [text.get_text() for text in ax.texts if "_version" in text.get_text()]
    ['shared · _version 0', 'its own · _version 0']
    """
    import matplotlib.pyplot as plt

    if not gradients:
        raise ValueError(str(NOTHING_TO_DRAW))
    holders: dict[int, list[str]] = {}
    shown = dict(islice(gradients.items(), _NAMES))
    for name, tensor in shown.items():
        holders.setdefault(_address(tensor), []).append(name)
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 0.4 + 0.8 * len(shown)), layout="constrained")
    y = 0.0
    for names in holders.values():
        middle, tensor = y + (len(names) - 1) / 2, gradients[names[0]]
        colour = CAUGHT if len(names) > 1 else KEPT
        frame = {"edgecolor": colour, "linewidth": 2}
        boxes = [_box(ax, (0, y + i), name, pad=0.45) for i, name in enumerate(names)]
        storage = _box(ax, (1, middle), _short(tensor), pad=0.5, style="square", **frame)
        for box in boxes:
            _arrow(ax, box, storage, colour)
        said = "shared" if len(names) > 1 else "its own"
        said += "" if tensor.is_inference() else f" · _version {tensor._version}"
        ax.text(1.28, middle, said, ha="left", va="center", fontsize=9, color=colour, weight="bold")
        y += len(names)
    ax.set(xlim=(-0.25, 2.0), ylim=(y - 0.4, -0.6))
    if len(shown) < len(gradients):
        ax.set_title(f"first {len(shown)} of {len(gradients):,} tensors", fontsize=9, loc="left")
    ax.set_axis_off()
    return ax


def _address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage; its id if it shares with nobody: empty, sparse, on the meta device."""
    try:
        return tensor.untyped_storage().data_ptr() or id(tensor)
    except (NotImplementedError, RuntimeError):
        return id(tensor)
