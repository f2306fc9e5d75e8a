"""What each path of an autograd graph has brought to a tensor: the numbers on the backward arrows of `plot_graph`.

Where several paths meet, backward adds up what they bring and keeps or hands on only the sum. The parts are found here
afterwards. A node of the graph is a function from the gradient of its result to those of its inputs, so it can be
applied by hand to the gradient that passed there; that runs no hook and changes no `.grad`. Two things are in the way:
backward frees what most nodes need (unless told `retain_graph=True`), and a hook may have changed a gradient on its way.
Then the sum helps, where it is known, if only one part is missing. A part that neither way tells stays unknown, and
where a sum contradicts its parts, as after a second pass that added to `.grad`, no part is told at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge

_MOST_NODES, _MOST_ELEMENTS = 500, 2**20  # beyond that a picture would take as long as backward

Place = tuple[Node, int]  # a node, and which of its results


@dataclass
class _Stop:
    """What is known of the gradient of one named tensor."""

    tensor: torch.Tensor
    caught: torch.Tensor | None
    # By the name of the tensor that it flows into in forward: what came back from there, None if unknown.
    parts: dict[str, torch.Tensor | None] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)  # from which of them a hook may have sent something else
    settled: bool = True  # nothing is unknown or unsure any more

    @property
    def kept(self) -> torch.Tensor | None:
        return dense(self.tensor.grad) if self.tensor.is_leaf or self.tensor.retains_grad else None

    @property
    def hooked(self) -> bool:
        kinds = ("_backward_hooks", "_post_accumulate_grad_hooks")
        return any(getattr(self.tensor, kind, None) for kind in kinds)


def brought(
    edges: Iterable[tuple[str, str]],
    order: list[str],
    tensors: Mapping[str, torch.Tensor],
    caught: Mapping[str, torch.Tensor],
) -> dict[tuple[str, str], torch.Tensor]:
    """Return what backward brought along each arrow, as far as it can be told.

    Parameters
    ----------
    edges : iterable of (str, str)
        The arrows of the forward pass, from a tensor to one that was computed from it.
    order : list of str
        The tensors of the graph, beginning with the one where backward began, each after all that it flows into.
    tensors : mapping of str to torch.Tensor
        The tensors by name.
    caught : mapping of str to torch.Tensor
        Gradients that hooks have seen, by name.
    """
    if len(order) > _MOST_NODES:
        return {}
    stops = {name: _Stop(tensors[name], dense(caught.get(name))) for name in order}
    for source, target in edges:
        stops[source].parts[target] = None
    places = {place(stop.tensor): name for name, stop in stops.items()}
    try:
        for name, stop in stops.items():
            if not _settle(stop):
                return {}
            gradient, sure = _leaving(stop, first=name == order[0])
            for source, part in spread(place(stop.tensor), gradient, places).items():
                stops[source].parts[name] = part
                if not sure:
                    stops[source].unsure.add(name)
    except (RuntimeError, TypeError, NotImplementedError):  # values that cannot be added, such as nested ones
        return {}
    return {
        (source, target): part
        for source, stop in stops.items()
        for target, part in stop.parts.items()
        if part is not None
    }


def place(tensor: torch.Tensor) -> Place:
    """Return where a tensor that requires a gradient stands in the graph."""
    with torch.inference_mode(False):  # in which a leaf has no edge
        edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _settle(stop: _Stop) -> bool:
    """Make sure of the parts of a tensor, or forget them; return False if they contradict their sum."""
    doubtful = {name for name, part in stop.parts.items() if part is None or name in stop.unsure}
    total = stop.kept if stop.caught is None else stop.caught
    # `.grad` is not the sum of what arrived if a hook on the tensor itself has changed that.
    changed = stop.caught is None and stop.hooked
    if total is not None and same(total_of(stop.parts.values()), total):
        return True
    if not doubtful:
        return total is None or changed or not stop.parts
    if total is not None and not changed and len(doubtful) == 1:
        (name,) = doubtful
        others = total_of(part for other, part in stop.parts.items() if other != name)
        stop.parts[name] = total if others is None else total - others
        return True
    stop.parts |= dict.fromkeys(doubtful, None)
    stop.settled = False
    return True


def _leaving(stop: _Stop, first: bool) -> tuple[torch.Tensor | None, bool]:
    """Return the gradient that left a tensor on its way back, and whether that is sure."""
    if stop.kept is not None:
        return stop.kept, True  # `retain_grad` keeps what all hooks have left of it
    gradient = stop.caught
    if first and stop.tensor.numel() == 1:
        gradient = torch.ones_like(stop.tensor)
    elif stop.settled and stop.parts:
        gradient = total_of(stop.parts.values())
    return gradient, not stop.hooked


def spread(
    start: Place, gradient: torch.Tensor | None, places: Mapping[Place, str]
) -> dict[str, torch.Tensor | None]:
    """Return what reaches the next named tensors if a gradient leaves one; None where that is unknown."""
    arrived: dict[Place, torch.Tensor | None] = {start: gradient}
    for node in _between(start[0], places):
        mine = [(node, nr) for nr in range(_results(node))]
        mine = {one for one in mine if one in arrived and (one == start or one not in places)}
        # AccumulateGrad has no next functions: applied by hand, it would add to `.grad`.
        if not mine or not node.next_functions:
            continue
        lost = any(arrived[one] is None for one in mine)
        gradients = [arrived[node, nr] if (node, nr) in mine else None for nr in range(_results(node))]
        results = None if lost else _applied(node, gradients)
        for i, (parent, nr) in enumerate(node.next_functions):
            result = None if results is None else results[i]
            if parent is None or (results is not None and result is None):
                continue  # nothing flows there
            to = parent, nr
            before = arrived.get(to, 0)
            arrived[to] = None if result is None or before is None else before + result
    return {places[to]: value for to, value in arrived.items() if to in places and to != start}


def _between(start: Node, places: Mapping[Place, str]) -> list[Node]:
    """Return the nodes from one named tensor to the next ones, each after all that send it something."""
    after: list[Node] = []
    seen, todo = {start}, [(start, iter(start.next_functions))]
    while todo and len(seen) <= _MOST_NODES:
        _, parents = todo[-1]
        for to in parents:
            if to[0] is not None and to[0] not in seen and to not in places:
                seen.add(to[0])
                todo.append((to[0], iter(to[0].next_functions)))
                break
        else:
            after.append(todo.pop()[0])
    return [] if todo else after[::-1]


def _results(node: Node) -> int:
    return len(getattr(node, "_input_metadata", (0,)))


def _applied(node: Node, gradients: list[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...] | None:
    """Return the gradients of a node's inputs, None if they cannot be told."""
    if isinstance(node, BackwardCFunction) or not callable(node):
        return None  # somebody's own backward, which may print or count
    if any(one is not None and one.numel() > _MOST_ELEMENTS for one in gradients):
        return None
    try:
        with torch.no_grad():
            result = node(*gradients)
    except Exception:  # what it needs has been freed, is on the meta device, ...
        return None
    results = result if isinstance(result, tuple) else (result,)
    told = tuple(map(dense, results))
    return None if any(a is not None and b is None for a, b in zip(results, told, strict=True)) else told


def dense(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """Return a gradient in a form that can be added to any other; None if a sparse one would be too large for that."""
    if gradient is None or gradient.layout is torch.strided:
        return gradient
    return gradient.to_dense() if gradient.numel() <= _MOST_ELEMENTS else None


def total_of(parts: Iterable[torch.Tensor | None]) -> torch.Tensor | None:
    """Return the sum of all parts; None if one is unknown, or there are none."""
    total = None
    for part in parts:
        if part is None:
            return None
        total = part if total is None else total + part
    return total


def same(one: torch.Tensor | None, other: torch.Tensor, rounding: float = 0.0) -> bool:
    if one is None or one.shape != other.shape:
        return False
    try:
        return torch.allclose(
            one.double(), other.double(), rtol=1e-4, atol=max(1e-8, rounding), equal_nan=True
        )
    except Exception:  # complex, on the meta device, on another device, ...
        return False
