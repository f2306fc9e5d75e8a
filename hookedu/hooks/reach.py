"""What Python functions can reach (closures, attributes, containers, globals that they name), put back as it was."""

import functools
import itertools
import operator
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from io import IOBase
from typing import Any

import torch
from torch import nn

from hookedu.hooks.inspection import owner_of
from hookedu.hooks.state import TensorBefore

_MISSING = object()
_ATOMS = (str, bytes, int, float, complex, bool, type(None), torch.Size, torch.dtype, torch.device)
# Instances of these packages belong to the process rather than to a hook, and keep account of things elsewhere.
_OF_THE_PROCESS = (
    "logging",
    "threading",
    "multiprocessing",
    "concurrent.",
    "asyncio",
    "weakref",
    "torch.distributed",
)
_PLAIN = {dict, OrderedDict, list, tuple, set, frozenset, deque}
_MOST_OBJECTS, _MOST_BYTES = 200_000, 1_000_000_000


class Reach:
    """Everything that some objects refer to directly or indirectly, as it is now.

    The values of tensors and the parameters, buffers and children of modules are not covered: these are for `restored`
    and for `Memory`.

    Parameters
    ----------
    first, roots : list
        Where to start. What can be reached from several of these counts for the one that comes first.
    copies : bool
        Whether to copy arrays of NumPy, which `restore` needs.

    Attributes
    ----------
    modules : list of torch.nn.Module
        The modules met on the way.
    unrestorable : set of str
        Names of types of objects that change when they are used and cannot be put back.
    """

    def __init__(self, first: list[Any], roots: list[Any], copies: bool = True) -> None:
        self.modules: list[nn.Module] = []
        self.unrestorable: set[str] = set()
        self._undo: list[Callable[[], object]] = []
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is used again
        self._bytes_left = _MOST_BYTES if copies else -1
        self._visit(first, [])
        self._tensors: list[list[torch.Tensor]] = []
        for root in roots:
            self._tensors.append([])
            self._visit([root], self._tensors[-1])

    def attached(self, n: int) -> list[torch.Tensor]:
        """Return the tensors attached to a graph that only the roots from the n-th on can reach."""
        return [tensor for tensor in self._tensors[n] if tensor.grad_fn is not None]

    def restore(self) -> None:
        """Put everything back; what has not changed is not touched."""
        for undo in self._undo:
            try:
                undo()
            except Exception as error:  # an object may refuse to be set
                self.unrestorable.add(type(error).__name__)

    def _visit(self, roots: list[Any], tensors: list[torch.Tensor]) -> None:
        waiting = [*roots]
        while waiting:
            item = waiting.pop()
            if issubclass(type(item), _ATOMS) or id(item) in self._seen:
                continue
            if len(self._seen) > _MOST_OBJECTS:
                self.unrestorable.add(f"> {_MOST_OBJECTS:,}")
                return
            self._seen[id(item)] = item
            if issubclass(type(item), torch.Tensor):
                tensors.append(item)
            try:
                waiting += self._enter(item, any(item is root for root in roots[:1]))
            except Exception:  # somebody else's class may fail at being looked at
                self.unrestorable.add(type(item).__name__)

    def _enter(self, item: Any, is_root: bool) -> list[Any]:
        """Note how to put one object back; return what it refers to."""
        kind = type(item)
        if kind in _PLAIN:
            return self._container(item)
        if issubclass(kind, types.MethodType | types.BuiltinMethodType):
            return [item.__self__, getattr(item, "__func__", None)]
        if issubclass(kind, types.FunctionType):
            return self._function(item) if is_root or owner_of(item) == "user" else []
        if issubclass(kind, type):
            return self._names(item, None) if owner_of(item) == "user" else []
        if issubclass(kind, types.ModuleType) or kind.__module__.startswith(_OF_THE_PROCESS):
            return []  # of the user's modules only the names that a function uses, see `_function`
        if issubclass(kind, functools.partial):
            return [item.func, *item.args, *item.keywords.values()]
        if issubclass(kind, nn.Module):
            self.modules.append(item)
            # Containers that are empty are for `restored`.
            return [
                v
                for name, v in vars(item).items()
                if not (_is_of_torch(name) or (type(v) in _PLAIN and not v))
            ]
        if issubclass(kind, torch.Tensor):
            return self._tensor(item)
        if issubclass(kind, torch.Generator | random.Random) or kind.__module__.startswith("numpy"):
            return self._of_numbers(item)
        if issubclass(kind, IOBase) or kind.__module__ == "queue" or hasattr(kind, "__next__"):
            self.unrestorable.add(kind.__name__)
            return []
        inside = [*self._container(item)]
        if hasattr(item, "__dict__"):
            inside.append(vars(item))
        slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(item, name)]
        if slots:
            inside += self._names(item, slots)
        return [*inside, kind]

    def _function(self, function: types.FunctionType) -> list[Any]:
        cells = function.__closure__ or ()
        inside = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), vars(function)]
        for cell in cells:
            inside += self._names(cell, ["cell_contents"])
        if owner_of(function) == "user":
            names = set(_names_in(function.__code__))
            spaces = [function.__globals__]
            spaces += [
                vars(value)
                for name in names
                if isinstance(value := function.__globals__.get(name), types.ModuleType)
                and owner_of(value) == "user"
            ]
            for space in spaces:
                before = {name: space.get(name, _MISSING) for name in names}
                self._undo.append(functools.partial(_put_back_names, space, before))
                inside += [value for value in before.values() if value is not _MISSING]
        return inside

    def _names(self, owner: Any, names: list[str] | None) -> list[Any]:
        """Note attributes: those named, or all of a class."""

        def now() -> dict[str, Any]:
            if names is None:
                return dict(vars(owner))
            return {name: getattr(owner, name) for name in names if hasattr(owner, name)}

        def undo() -> None:
            after = now()
            for name in after.keys() - before.keys():
                delattr(owner, name)
            for name, value in before.items():
                if after.get(name, _MISSING) is not value:
                    setattr(owner, name, value)

        before = now()
        self._undo.append(undo)
        if names is not None:
            return list(before.values())
        return [getattr(value, "__func__", value) for value in before.values()] + list(owner.__bases__)

    def _tensor(self, tensor: torch.Tensor) -> list[Any]:
        before = TensorBefore(tensor)
        tables = {
            name: dict(table) if (table := getattr(tensor, name, None)) else {}
            for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
        }

        def undo() -> None:
            before.restore()
            for name, hooks in tables.items():
                table = getattr(tensor, name, None)
                if table is not None and dict(table) != hooks:
                    table.clear()
                    table.update(hooks)

        self._undo.append(undo)
        return [*vars(tensor).values(), *([] if before.grad is None else [before.grad])]

    def _of_numbers(self, item: Any) -> list[Any]:
        """Note a generator of random numbers, or an array of NumPy."""
        numpy: Any = sys.modules.get("numpy")
        if issubclass(type(item), torch.Generator):
            self._undo.append(functools.partial(item.set_state, item.get_state()))
        elif issubclass(type(item), random.Random):
            self._undo.append(functools.partial(item.setstate, item.getstate()))
        elif hasattr(item, "bit_generator"):
            bits = item.bit_generator
            self._undo.append(functools.partial(setattr, bits, "state", bits.state))
        elif isinstance(item, numpy.ndarray) and item.flags.writeable:
            if item.nbytes > self._bytes_left:
                self.unrestorable.add(type(item).__name__)
                return []
            self._bytes_left -= item.nbytes
            self._undo.append(functools.partial(numpy.copyto, item, item.copy()))
            return list(item.flat) if item.dtype.hasobject else []
        return []

    def _container(self, box: Any) -> list[Any]:
        """Note the items of a list, dict, set or deque; return the items of any container."""
        bases: tuple[Any, ...] = (OrderedDict, dict, list, set, deque)
        kind = next((base for base in bases if isinstance(box, base)), None)
        if kind is None:
            if isinstance(box, tuple | frozenset):
                return list(box)
            return list(box.values()) if isinstance(box, types.MappingProxyType) else []
        before = _flat(kind, box)

        def undo() -> None:  # by the methods of `kind`: a subclass may check or refuse what it is given
            after = _flat(kind, box)
            if len(after) != len(before) or not all(map(operator.is_, after, before)):
                kind.clear(box)
                if issubclass(kind, dict):
                    kind.update(box, zip(before[::2], before[1::2], strict=True))
                else:
                    (kind.update if kind is set else kind.extend)(box, before)

        self._undo.append(undo)
        return before


def _flat(kind: Any, box: Any) -> list[Any]:
    """Return the items of a list, set or deque, or keys and values of a dict in turn."""
    return list(
        itertools.chain.from_iterable(kind.items(box)) if issubclass(kind, dict) else kind.__iter__(box)
    )


def _is_of_torch(attribute: str) -> bool:
    """Check for the tables of a module with its parameters, buffers, children and hooks."""
    return attribute in ("_parameters", "_buffers", "_modules") or "_hooks" in attribute


def _put_back_names(space: dict[str, Any], before: dict[str, Any]) -> None:
    for name, value in before.items():
        if value is _MISSING:
            space.pop(name, None)
        else:
            space[name] = value


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function uses, also those of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    slots = [slots] if isinstance(slots, str) else slots
    return [name for name in slots if name not in ("__dict__", "__weakref__") and not name.startswith("__")]
