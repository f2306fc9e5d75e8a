"""Plots of small autograd graphs and their gradients, and of tensors that share memory."""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import torch

from hookedu.hooks.tensors import shape_text, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KEPT, _CAUGHT, _GONE = "#1b7837", "#b35806", "#777777"
_COLUMNS, _ROWS, _NAMES = 8, 24, 36  # as many as fit into 20 by 30 inches


def plot_graph(
    output: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the autograd graph behind a tensor, with one box per named tensor.

    The forward direction is from left to right. Leaves have a double frame. Above each box stands the
    operation that made the tensor, below it the gradient: kept in ``.grad`` (leaves, and tensors after
    ``retain_grad()``), seen by a hook, or gone.

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

    Raises
    ------
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
    ['.grad = 36', 'hook saw 12', 'gradient gone']
    """
    import matplotlib.pyplot as plt

    gradients = gradients or {}
    if output.grad_fn is None:
        raise ValueError("output has no grad_fn: it was not computed from a tensor that requires a gradient")
    edges, found = _edges(output, tensors)
    edges, positions = _layout(edges, found)
    shown = [name for name in found if name in positions]
    if ax is None:
        width = 2.2 * (1 + max(x for x, _ in positions.values()))
        height = 0.5 + 1.15 * (1 + max(y for _, y in positions.values()))
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    # Arrows end at the edge of a box, not behind it: the gap, in points, grows with the text in the box.
    gaps = {name: max(34, 6 + 2.6 * len(_label(name, tensors[name]))) for name in shown}
    for source, target in edges:
        ax.annotate(
            "",
            positions[target],
            positions[source],
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#555555",
                "shrinkA": gaps[source],
                "shrinkB": gaps[target],
            },
        )
    for name in shown:
        _draw_tensor(ax, positions[name], name, tensors[name], gradients.get(name))
    xs, ys = zip(*positions.values(), strict=True)
    ax.set(xlim=(min(xs) - 0.5, max(xs) + 0.5), ylim=(max(ys) + 0.65, min(ys) - 0.45))
    if len(shown) < len(found):
        ax.set_title(f"{len(shown)} of {len(found):,} tensors, nearest to the output", fontsize=9, loc="left")
    ax.set_axis_off()
    return ax


def _edges(
    output: torch.Tensor, tensors: Mapping[str, torch.Tensor]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Walk `grad_fn.next_functions` back from `output`; return arrows (source, target) and names found."""
    names = {tensor.grad_fn: name for name, tensor in tensors.items() if tensor.grad_fn is not None}
    leaves = {id(tensor): name for name, tensor in tensors.items() if tensor.is_leaf}
    if output.grad_fn not in names:
        raise ValueError("output must be one of the named tensors")
    edges, shown = [], [names[output.grad_fn]]
    todo = [(output.grad_fn, names[output.grad_fn])]  # (node, named tensor that its result flows into)
    seen = set()
    while todo:
        node, target = todo.pop()
        for parent, _ in node.next_functions:
            if parent is None or (parent, target) in seen:
                continue
            seen.add((parent, target))
            leaf = getattr(parent, "variable", None)  # only AccumulateGrad nodes of leaves have it
            name = names.get(parent) if leaf is None else leaves.get(id(leaf))
            if name and name not in shown:
                shown.append(name)
            if name:
                edges.append((name, target))
            todo.append((parent, name or target))
    order = list(tensors)
    return sorted(set(edges), key=lambda e: (order.index(e[0]), order.index(e[1]))), sorted(
        shown, key=order.index
    )


def _layout(
    edges: list[tuple[str, str]], found: list[str]
) -> tuple[list[tuple[str, str]], dict[str, tuple[float, float]]]:
    """Place the tensors that fit: x is the longest distance from a leaf, y centres each column.

    Return the arrows between them, too.
    """
    behind = _longest([(target, source) for source, target in edges], found)
    near = {name for name in found if behind[name] < _COLUMNS}
    depth = _longest([edge for edge in edges if near.issuperset(edge)], found)
    columns: dict[int, list[str]] = {}
    for name in sorted(near, key=lambda name: (behind[name], found.index(name))):
        columns.setdefault(depth[name], []).append(name)
    kept = {name for column in columns.values() for name in column[:_ROWS]}
    columns = {x: [name for name in found if name in kept and depth[name] == x] for x in columns}
    tallest = max(map(len, columns.values()))
    positions = {
        name: (float(x), y + (tallest - len(column)) / 2)
        for x, column in columns.items()
        for y, name in enumerate(column)
    }
    return [edge for edge in edges if kept.issuperset(edge)], positions


def _longest(edges: list[tuple[str, str]], names: list[str]) -> dict[str, int]:
    """Return the length of the longest path that leads to each name."""
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        before[target].append(source)
    length: dict[str, int] = {}
    for name in names:
        todo = [name]  # not by recursion, as a chain may be longer than Python's stack
        while todo:
            waiting = [source for source in before[todo[-1]] if source not in length]
            if waiting:
                todo += waiting
            else:
                last = todo.pop()
                length[last] = max((length[source] + 1 for source in before[last]), default=0)
    return length


def _draw_tensor(
    ax: "Axes", position: tuple[float, float], name: str, tensor: torch.Tensor, caught: torch.Tensor | None
) -> None:
    x, y = position
    operation = "leaf"
    if tensor.grad_fn is not None:
        operation = tensor.grad_fn.name().removesuffix("0").removesuffix("Backward").lower()
    frame = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "#333333"}
    label = _label(name, tensor)
    if tensor.is_leaf:  # outer frame first, so that the inner one is on top
        ax.text(x, y, label, ha="center", va="center", bbox={**frame, "boxstyle": "round,pad=0.65"})
    ax.text(x, y, label, ha="center", va="center", bbox=frame)
    ax.text(x, y - 0.31, operation, ha="center", va="center", fontsize=8, color=_GONE)
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        said, colour = f".grad = {_short(tensor.grad)}", _KEPT
    elif caught is not None:
        said, colour = f"hook saw {_short(caught)}", _CAUGHT
    else:
        said, colour = "gradient gone", _GONE
    ax.text(x, y + 0.34, said, ha="center", va="center", fontsize=9, color=colour, weight="bold")


def _label(name: str, tensor: torch.Tensor) -> str:
    return f"{name} = {_short(tensor)}"


def _short(tensor: torch.Tensor) -> str:
    """Format a tensor to fit into a box: as a number, a short list, or a shape."""
    try:
        if tensor.numel() == 1:
            return f"{tensor.item():g}"
        if tensor.dim() == 1 and tensor.numel() <= 4:
            return "[" + ", ".join(f"{v:g}" for v in tensor.tolist()) + "]"
    except Exception:  # such as on the meta device: no values
        pass
    return shape_text(sizes(tensor))


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
        raise ValueError("no gradients to draw")
    holders: dict[int, list[str]] = {}
    shown = dict(islice(gradients.items(), _NAMES))
    for name, tensor in shown.items():
        holders.setdefault(_address(tensor), []).append(name)
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 0.4 + 0.8 * len(shown)), layout="constrained")
    y = 0.0
    for names in holders.values():
        middle, tensor = y + (len(names) - 1) / 2, gradients[names[0]]
        colour = _CAUGHT if len(names) > 1 else _KEPT
        for name in names:
            frame = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "#333333"}
            ax.annotate(
                "",
                (1, middle),
                (0, y),
                arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 16, "shrinkB": 38},
            )
            ax.text(0, y, name, ha="center", va="center", bbox=frame)
            y += 1
        frame = {"boxstyle": "square,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 2}
        ax.text(1, middle, _short(tensor), ha="center", va="center", bbox=frame)
        said = "shared" if len(names) > 1 else "its own"
        said += "" if tensor.is_inference() else f" · _version {tensor._version}"
        ax.text(1.28, middle, said, ha="left", va="center", fontsize=9, color=colour, weight="bold")
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
