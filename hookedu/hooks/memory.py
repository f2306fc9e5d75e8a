"""Which memory the operations of a run write to, and what refers to it, for `diagnose`."""

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hookedu.hooks.state import Snapshot
from hookedu.hooks.tensors import parts, storage_bytes, tensors_in

# What PyTorch's batch norms write to, although their schemas do not say so.
_UNDECLARED = ("running_mean", "running_var")


class Place(NamedTuple):
    """The bytes of a storage from the first to the last one that a tensor uses."""

    storage: int
    first: int
    end: int

    def overlaps(self, other: "Place") -> bool:
        """Check whether some byte may belong to both."""
        return self.storage == other.storage and self.first < other.end and other.first < self.end


def place_of(tensor: torch.Tensor) -> Place | None:
    """Return where a tensor's numbers lie, or None for formats without a storage of their own."""
    try:
        size = tensor.element_size()
        first, numbers = tensor.storage_offset() * size, tensor.numel()
        if numbers and not tensor.is_contiguous():
            numbers = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        return Place(tensor.untyped_storage()._cdata, int(first), int(first + numbers * size))
    except Exception:  # sparse, nested, of another library, or a wrapper of vmap
        return None


def places_of(*values: Any) -> dict[Place, torch.Tensor]:
    """Return the tensors among the arguments or results of operations, by their places."""
    tensors = (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))
    return {place: tensor for tensor in tensors if (place := place_of(tensor))}


def _weakly(tensors: dict[Place, torch.Tensor]) -> dict[Place, StorageWeakRef]:
    return {place: StorageWeakRef(tensor.untyped_storage()) for place, tensor in tensors.items()}


class Memory(TorchDispatchMode):
    """A mode that notes each write to memory, and copies memory from before the run when it is written to first."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        cls: Any = type(self)
        if "torch._dynamo" in sys.modules and not hasattr(cls.__torch_dispatch__, "_torchdynamo_disable"):
            cls.__torch_dispatch__ = torch._dynamo.disable(cls.__torch_dispatch__)
        self.writes = 0  # how many there were so far
        self._log: dict[int, list[tuple[int, Place]]] = {}  # number of each write, and where; by storage
        self.new: set[int] = set()  # the storages that have come into being since, by their `_cdata`
        self.made: dict[Place, StorageWeakRef] | None = (
            None  # what operations make or write to, while it is a dict
        )
        self.before = Snapshot()  # what is older than the run and has been written to

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Tell torch.compile to compile as if this mode were not there."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not load the compiler, which takes seconds, to be kept from compiling; see `__init__`."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        written = places_of(
            *(args[i] if i < len(args) else kwargs.get(name) for i, name in _arguments_written(func))
        )
        for place, tensor in written.items():
            self._log.setdefault(place.storage, []).append((self.writes, place))
            self.writes += 1
            if place.storage not in self.new:
                self.before.add(tensor, tensor._base)
        result = func(*args, **kwargs)
        made = places_of(result)
        if any(place.storage not in self.new for place in made):
            given = {place.storage for place in places_of(args, kwargs)}
            self.new.update(place.storage for place in made if place.storage not in given)
        if self.made is not None:
            self.made |= _weakly(made | written)
        return result

    def written(self, place: Place, since: int) -> bool:
        """Check whether an operation has written to these bytes after the first `since` writes."""
        return any(n >= since and at.overlaps(place) for n, at in reversed(self._log.get(place.storage, ())))


@functools.cache
def _arguments_written(func: Any) -> list[tuple[int, str]]:
    """Return position and name of the arguments that an operation writes to."""
    schema = getattr(func, "_schema", None)
    arguments = enumerate(schema.arguments) if schema else ()
    return [
        (i, a.name)
        for i, a in arguments
        if a.name in _UNDECLARED or (a.alias_info is not None and a.alias_info.is_write)
    ]


class References:
    """How many references there are to the tensors of a structure, to their memory, and to the containers around them.

    Whoever keeps one of them, wherever that may be, adds a reference.
    """

    def __init__(self, value: Any) -> None:
        self.things = [*with_inside(value)]
        self.tensors = [thing for thing in self.things if isinstance(thing, torch.Tensor)]
        self.counts, self.uses = self._counts(), [*map(_uses, self.tensors)]

    def _counts(self) -> list[int]:
        return [*map(sys.getrefcount, self.things)]

    def more(self, returned: list[Any]) -> dict[Place, StorageWeakRef]:
        """Return the memory to which there are more references now, but for those from a list of returned values."""
        known = {*map(id, self.things)}
        boxes = [box for box in with_inside(returned) if id(box) not in known]
        from_there = Counter(id(item) for box in boxes for _, item in parts(box))
        del boxes
        counts = zip(self.things, self._counts(), self.counts, strict=True)
        kept = [thing for thing, now, before in counts if now - before > from_there[id(thing)]]
        if returned[0] is None:
            kept += [t for t, before in zip(self.tensors, self.uses, strict=True) if _uses(t) > before]
        return _weakly(places_of(*tensors_in(kept)))


def with_inside(value: Any, above: tuple[int, ...] = ()) -> Iterator[Any]:
    """Yield the tensors of a structure, and the containers with something inside."""
    inside = () if isinstance(value, torch.Tensor) or id(value) in above else parts(value)
    if inside or isinstance(value, torch.Tensor):
        yield value
    for _, item in inside:
        yield from with_inside(item, (*above, id(value)))


def _uses(tensor: torch.Tensor) -> int:
    """Return the number of references to a tensor's memory: by the tensor, others on the same memory, and arrays."""
    place = place_of(tensor)
    return torch._C._storage_Use_Count(place.storage) if place else 0


def graph_bytes(tensors: list[torch.Tensor], without: set[int] | None = None) -> int:
    """Return the memory in bytes that the graphs of some tensors keep for backward.

    `without` holds the storages not to count, by their `_cdata`, for example those of the parameters.
    """
    todo, seen, saved = [t.grad_fn for t in tensors if t.grad_fn is not None], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo += [parent for parent, _ in node.next_functions if parent is not None]
        for name in dir(node):
            if name.startswith("_saved_") or name == "saved_tensors":
                with contextlib.suppress(RuntimeError):  # freed by backward, or changed in place
                    saved += tensors_in(getattr(node, name))
    return storage_bytes(
        t for t in saved if not ((place := place_of(t)) and place.storage in (without or ()))
    )
