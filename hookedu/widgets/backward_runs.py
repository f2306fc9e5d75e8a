"""Real backward passes over somebody's graph, with hooks hung on and taken off again, and what was seen on the way."""

import contextlib
import gc
import io
import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node

from hookedu.hooks.reach import undone
from hookedu.plots.flows import dense, place, same, spread, total_of
from hookedu.plots.structure import arrange, edges_behind, longest

Hook = Callable[[torch.Tensor], torch.Tensor | None]
Edge = tuple[str, str]  # from a tensor to one that was computed from it
_ROUNDING = 1e-6  # of the largest term of a sum, some units in the last place of float32


@dataclass
class Pass:
    """What one backward pass did, each gradient as a copy of that moment.

    Attributes
    ----------
    arrived : dict of str to torch.Tensor
        The gradient of each tensor before the hook that was hung on it, in the order of arrival. Hooks that were there
        already have run.
    left : dict of str to torch.Tensor
        The gradient that went on from each tensor; of a leaf, what its `.grad` is in the end.
    parts : dict
        What the path along each edge brought, where that can be told.
    printed : str
        What was printed on the way.
    """

    arrived: dict[str, torch.Tensor] = field(default_factory=dict)
    left: dict[str, torch.Tensor] = field(default_factory=dict)
    parts: dict[Edge, torch.Tensor] = field(default_factory=dict)
    printed: str = ""


class Graph:
    """The graph behind a tensor, and the named tensors in it that a picture has room for.

    Attributes
    ----------
    tensors : dict of str to torch.Tensor
        These tensors.
    edges : list of (str, str)
        Which flows into which, with the unnamed steps between them joined into one edge.
    places : dict of str to (int, float)
        Column and row of each tensor.
    unshown : int
        How many of the named tensors in the graph there is no room for.
    """

    def __init__(self, output: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> None:
        self.output = output
        edges, found = edges_behind(output, tensors)
        _, places = arrange(edges, found, _behind(edges, found))
        self.tensors = {name: tensors[name] for name in places}
        self.unshown = len(found) - len(places)
        self.edges, found = edges_behind(output, self.tensors)
        _, self.places = arrange(self.edges, found, _behind(self.edges, found))
        distance = _behind(self.edges, found)
        self._backward = sorted(found, key=distance.__getitem__)  # each after all that it flows into
        nodes = _nodes(place(output)[0])
        variables = (
            getattr(node, "variable", None) for node in nodes if node.name().endswith("AccumulateGrad")
        )
        self._leaves = [leaf for leaf in variables if leaf is not None]
        # Such as of a reentrant checkpoint, which runs a backward pass of its own.
        self._written_in_python = [vars(node) for node in nodes if isinstance(node, BackwardCFunction)]
        self._inner = [weakref.ref(tensor) for tensor in _computed_by(nodes)]

    @property
    def hooked(self) -> list[str]:
        """The tensors with hooks of the user's own."""
        kinds = ("_backward_hooks", "_post_accumulate_grad_hooks")
        return [n for n, t in self.tensors.items() if any(getattr(t, kind, None) for kind in kinds)]

    def run(self, hooks: Mapping[str, Hook], reference: Pass | None = None) -> Pass:
        """Run backward once with these hooks, and leave everything as it was.

        Hooks that the tensors have already are run as well: they are the user's own.

        Parameters
        ----------
        hooks : mapping of str to callable
            The hooks by the name of their tensor.
        reference : Pass, optional
            The same with hooks that change nothing in place. Its parts tell which of those of this pass can be trusted
            where a gradient has been changed between two tensors.
        """
        own, result, printed = set(self.hooked), Pass(), io.StringIO()
        with undone(*self._written_in_python):
            with self._gradients_aside(), contextlib.redirect_stdout(printed), contextlib.ExitStack() as hung:
                for name, tensor in self.tensors.items():
                    for hook in (
                        partial(_note, result.arrived, name),
                        hooks.get(name),
                        partial(_note, result.left, name),
                    ):
                        if hook is not None:
                            hung.callback(tensor.register_hook(hook).remove)
                self.output.backward(retain_graph=True)
                for name, tensor in self.tensors.items():
                    # It may share its memory with a gradient that a hook changed after it had arrived here.
                    if tensor.is_leaf and tensor.grad is not None:
                        _note(result.left, name, tensor.grad)
            result.printed = printed.getvalue()
            result.parts = self._parts(result, own, reference)
        return result

    def spoiled(self, run: Pass, reference: Pass) -> list[str]:
        """Return the tensors that got or, as leaves, kept another gradient than in the pass without changes in place."""

        def other(name: str, one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
            return _differ(one[name], two.get(name), self._rounding(run, name))

        def kept(name: str) -> bool:
            return not self.tensors[name].is_leaf or not other(name, run.left, reference.left)

        return [n for n in run.arrived if other(n, run.arrived, reference.arrived) or not kept(n)]

    def _rounding(self, run: Pass, name: str) -> float:
        """Return how far rounding may change the gradient of a tensor: large terms that cancel leave a small sum."""
        terms = (run.left.get(target) for source, target in self.edges if source == name)
        sizes = [term.abs().max().item() for term in map(dense, terms) if term is not None and term.numel()]
        return _ROUNDING * max((size for size in sizes if math.isfinite(size)), default=0.0)

    def _parts(self, run: Pass, own: set[str], reference: Pass | None) -> dict[Edge, torch.Tensor]:
        places = {place(tensor): name for name, tensor in self.tensors.items()}
        brought: dict[str, dict[str, torch.Tensor | None]] = {name: {} for name in self.tensors}
        for source, target in self.edges:
            brought[source][target] = None
        for name in self._backward:
            for source, part in spread(place(self.tensors[name]), run.left.get(name), places).items():
                brought[source][name] = part
        told: dict[Edge, torch.Tensor] = {}
        spoiled = set() if reference is None else set(self.spoiled(run, reference))
        for source, parts in brought.items():
            if source in spoiled:
                assert reference is not None
                sure = {target: part for target, part in parts.items() if (source, target) in reference.parts}
            else:
                rounding = self._rounding(run, source)
                sure = _explained(parts, dense(run.arrived.get(source)), source in own, rounding)
            told |= {(source, target): part for target, part in sure.items() if part is not None}
        return told

    @contextlib.contextmanager
    def _gradients_aside(self) -> Iterator[None]:
        """Take every `.grad` that backward would add to away, and put the very same tensors back."""
        inner = [tensor for ref in self._inner if (tensor := ref()) is not None and tensor.retains_grad]
        kept = [(tensor, tensor.grad) for tensor in (*self._leaves, *inner)]
        try:
            for tensor, _ in kept:
                tensor.grad = None
            yield
        finally:
            for tensor, gradient in kept:
                tensor.grad = gradient


def _note(into: dict[str, torch.Tensor], name: str, gradient: torch.Tensor) -> None:
    into[name] = gradient.detach().clone()


def _behind(edges: list[Edge], names: list[str]) -> dict[str, int]:
    """Return the longest distance of each tensor to the output."""
    return longest([(target, source) for source, target in edges], names)


def _explained(
    parts: dict[str, torch.Tensor | None], arrived: torch.Tensor | None, own: bool, rounding: float
) -> dict[str, torch.Tensor | None]:
    """Return the parts of a gradient that can be trusted: those that add up to it.

    They do not if a hook on an unnamed step between two tensors changed something. A hook of the user's own on the tensor
    itself runs before the sum is seen, so there is nothing to compare the parts with.
    """
    unknown = [target for target, part in parts.items() if part is None]
    if own or arrived is None or len(unknown) > 1:
        return parts
    if unknown:
        others = total_of(part for part in parts.values() if part is not None)
        return parts | {unknown[0]: arrived if others is None else arrived - others}
    return parts if same(total_of(parts.values()), arrived, rounding) else {}


def _differ(one: torch.Tensor, other: torch.Tensor | None, rounding: float) -> bool:
    """Check whether two passes gave different numbers; equal ones may differ by rounding."""
    if other is None or one.shape != other.shape:
        return True
    one, other = (each.to_dense() if each.layout is not torch.strided else each for each in (one, other))
    return not torch.allclose(one, other, rtol=1e-4, atol=rounding, equal_nan=True)


def _nodes(start: Node) -> set[Node]:
    found, todo = {start}, [start]
    while todo:
        for parent, _ in todo.pop().next_functions:
            if parent is not None and parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


def _computed_by(nodes: set[Node]) -> list[torch.Tensor]:
    """Return the tensors that these nodes have computed, named or not: any may keep its gradient.

    A node does not know its tensor, so all tensors are asked. That takes a moment, but needs to be done only once: a graph
    gets no new tensors.
    """
    classes, todo = {torch.Tensor}, [torch.Tensor]
    while todo:
        new = [cls for cls in todo.pop().__subclasses__() if cls not in classes]
        classes.update(new)
        todo += new
    return [each for each in gc.get_objects() if type(each) in classes and _node_of(each) in nodes]


def _node_of(tensor: torch.Tensor) -> Node | None:
    try:
        return tensor.grad_fn
    except Exception:  # somebody else's subclass, or a view that was changed in a forbidden way
        return None
