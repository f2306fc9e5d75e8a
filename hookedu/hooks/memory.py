"""Which memory the operations of a run write to, and who held it: what `diagnose` knows of tensors."""

import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from hookedu.hooks.tensors import storage_bytes, tensors_in


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


class Memory(TorchDispatchMode):
    """A mode that notes each write to memory, and copies memory from before the run when it is written to first.

    Attributes
    ----------
    writes : int
        Number of writes so far.
    new : set of int
        The storages that have come into being since, by their `_cdata`.
    made : dict of Place to StorageWeakRef, or None
        While it is a dict, what operations make or write to is added to it.
    unrestorable : set of str
        Names of types of tensors that `restore` could not put back.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.unrestorable: set[str] = set()
        cls: Any = type(self)
        if "torch._dynamo" in sys.modules and not hasattr(cls.__torch_dispatch__, "_torchdynamo_disable"):
            cls.__torch_dispatch__ = torch._dynamo.disable(cls.__torch_dispatch__)
        self.writes = 0
        self._log: dict[int, list[tuple[int, Place]]] = {}  # number of each write, and where; by storage
        self.new: set[int] = set()
        self.made: dict[Place, StorageWeakRef] | None = None
        # Written to in spite of being from before the run: memory, its bytes now and then, by storage; and tensors, each
        # with whether it had no graph and with its version.
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._tensors: dict[int, tuple[torch.Tensor, bool, int | None]] = {}

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
        written = [*_written(func, args, kwargs)]
        for tensor in written:
            self._about_to_write(tensor)
        result = func(*args, **kwargs)
        made = {place: t for t in _flat(result) if (place := place_of(t))}
        if any(place.storage not in self.new for place in made):
            given = {place.storage for t in [*_flat(args), *_flat(kwargs.values())] if (place := place_of(t))}
            self.new.update(place.storage for place in made if place.storage not in given)
        if self.made is not None:
            made |= {place: t for t in written if (place := place_of(t))}
            self.made |= {place: StorageWeakRef(t.untyped_storage()) for place, t in made.items()}
        return result

    def _about_to_write(self, tensor: torch.Tensor) -> None:
        place = place_of(tensor)
        if place is None:
            return
        self._log.setdefault(place.storage, []).append((self.writes, place))
        self.writes += 1
        if place.storage in self.new:
            return
        for one in (tensor, tensor._base):
            if one is not None and id(one) not in self._tensors:
                version = None if one.is_inference() else one._version
                self._tensors[id(one)] = one, one.grad_fn is None, version
        for part in _dense(tensor):
            storage = part.untyped_storage()
            if storage._cdata not in self._before and storage.device.type != "meta":
                now = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
                self._before[storage._cdata] = now, now.clone()

    def written(self, place: Place, since: int) -> bool:
        """Check whether an operation has written to these bytes after the first `since` writes."""
        return any(n >= since and at.overlaps(place) for n, at in reversed(self._log.get(place.storage, ())))

    def restore(self) -> None:
        """Give memory from before the run its contents back, and tensors there their version and lack of a graph."""
        for now, before in self._before.values():
            try:
                if now.untyped_storage().nbytes() == before.numel() and not torch.equal(now, before):
                    now.copy_(before)
            except Exception:  # such as memory that may only be read
                self.unrestorable.add("Tensor")
        torch_c: Any = torch._C
        for tensor, alone, version in self._tensors.values():
            try:
                if alone and tensor.grad_fn is not None and not tensor._is_view():
                    tensor.detach_()
                if version is not None and tensor._version != version:
                    torch_c._autograd._unsafe_set_version_counter((tensor,), (version,))
            except Exception:
                self.unrestorable.add(type(tensor).__name__)


def _dense(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the tensors that hold the numbers of a wrapper such as DTensor, or the tensor itself."""
    if is_traceable_wrapper_subclass(tensor):
        for name in tensor.__tensor_flatten__()[0]:
            yield from _dense(getattr(tensor, name))
    else:
        yield tensor


@functools.cache
def _places_written(func: Any) -> list[tuple[int, str]]:
    """Return position and name of the arguments that an operation writes to."""
    schema = getattr(func, "_schema", None)
    arguments = enumerate(schema.arguments) if schema else ()
    return [(i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write]


def _written(func: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    for position, name in _places_written(func):
        yield from _flat(args[position] if position < len(args) else kwargs.get(name))


def _flat(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among the arguments or results of an operation, which are not nested deeply."""
    if isinstance(value, torch.Tensor):
        yield value
    elif not isinstance(value, str) and isinstance(value, Iterable):
        for item in value:
            yield from _flat(item)


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
