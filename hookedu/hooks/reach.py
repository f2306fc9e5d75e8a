"""What a run can change: the state of the process, a model, and all that it and its hooks can reach, put back as it was."""

import contextlib
import copyreg
import functools
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from io import IOBase
from typing import Any

import torch
from torch import nn

from hookedu.hooks.inspection import owner_of
from hookedu.hooks.memory import Memory
from hookedu.hooks.state import CONTAINERS, GLOBAL_HOOKS, GLOBAL_STEP_HOOKS, Snapshot, is_numbers
from hookedu.language import Text

# Instances of these packages belong to the process rather than to a hook, and keep account of things elsewhere.
_OF_THE_PROCESS = (
    *("logging", "threading", "multiprocessing", "concurrent.", "asyncio", "weakref"),
    "torch.distributed",
)
_MOST_OBJECTS, _MOST_BYTES = 200_000, 1_000_000_000


@contextlib.contextmanager
def restored(
    model: nn.Module | None = None, *own: Any, numpy: bool = True
) -> Iterator["dict[str, Exception | None]"]:
    """Return a context manager that restores state at its end, also after an exception.

    It restores the RNGs of Python, PyTorch and, unless told otherwise, NumPy (which takes longer than all the rest),
    grad mode, the default dtype and the global hooks; and with a model, what it and `own` can reach. The value of the
    context is `Reach.unrestorable`. What belongs to the model itself and refuses to be put back raises its error.
    """
    contents = [(table, dict(table)) for table in (*GLOBAL_HOOKS.values(), *GLOBAL_STEP_HOOKS.values())]
    python_rng, torch_rng, dtype = random.getstate(), torch.get_rng_state(), torch.get_default_dtype()
    # NumPy loads it when it is first used.
    numpy_random: Any = sys.modules.get("numpy.random") if numpy else None
    numpy_rng = numpy_random.get_state() if numpy_random else None
    cuda_rng = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    grad_mode = torch.is_grad_enabled()
    before = None if model is None else Reach(model, own)
    try:
        yield {} if before is None else before.unrestorable
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(torch_rng)
        torch.cuda.set_rng_state_all(cuda_rng) if cuda_rng else None
        random.setstate(python_rng)
        numpy_random.set_state(numpy_rng) if numpy_random else None
        for table, items in contents:
            table.clear()
            table.update(items)
        if before is not None:
            before.restore()
            for error in filter(None, before.unrestorable.values()):
                raise error


@contextlib.contextmanager
def undone(*own: Any) -> Iterator[None]:
    """Return a context manager for a backward pass that is to leave no trace.

    Backward may run parts of a model once more (`torch.utils.checkpoint`), and the graph does not say which. So all memory
    that operations write to is put back, if it is older than the pass, and the rest as by `restored`, what `own` can reach
    included.
    """
    memory = Memory()
    with restored(nn.Module() if own else None, *own):
        try:
            with memory:
                yield
        finally:
            memory.before.restore()


class Reach(Snapshot):
    """A snapshot of all that a model, `own` and then the hooks in `roots` refer to, whatever kind of object it is.

    What several of them can reach counts for the first. The model itself comes first of all: what `Snapshot` covers.
    Of tensors and arrays elsewhere up to 1 GB is copied; `Memory` copies the tensors that operations write to in any
    case. Without `copies` there is no `restore`, only `attached`.
    """

    def __init__(
        self, model: nn.Module, own: Iterable[Any], roots: Iterable[Any] = (), copies: bool = True
    ) -> None:
        super().__init__(model)
        self._bytes_left, self._objects_left = _MOST_BYTES if copies else -1, _MOST_OBJECTS
        self._tensors: list[list[torch.Tensor]] = [[]]
        self._root: Any = None
        self._in_model, others = True, []
        self._others: list[Any] = others
        self.add(model)
        self._in_model = False
        for item in others:
            self.add(*self._enter(item))
        self.add(*own)
        for self._root in roots:
            self._tensors.append([])
            self.add(self._root)

    def attached(self, n: int) -> list[torch.Tensor]:
        """Return the tensors attached to a graph that only the roots from the n-th on can reach."""
        return [tensor for tensor in self._tensors[1 + n] if tensor.grad_fn is not None]

    def _enter(self, item: Any) -> list[Any]:
        if not self._in_model and not issubclass(type(item), nn.Module | torch.Tensor):
            self._objects_left -= 1
        if self._objects_left < 0:
            self.unrestorable[f"> {_MOST_OBJECTS:,}"] = None
            return []
        try:
            return super()._enter(item) if self._in_model else self._enter_any(type(item), item)
        except Exception as error:  # somebody else's class may fail at being looked at
            self.unrestorable[type(item).__name__] = error if self._in_model else None
            return []

    def _note(self, item: Any, undo: Callable[[], object]) -> None:
        super()._note(item, undo if self._in_model else functools.partial(self._try, item, undo))

    def _try(self, item: Any, undo: Callable[[], object]) -> None:
        """Put back what does not belong to the model itself; it may refuse."""
        try:
            undo()
        except Exception:  # what a setter of somebody else's class raises
            self.unrestorable[type(item).__name__] = None

    def _other(self, item: Any) -> list[Any]:
        """Put off what a model refers to besides modules, tensors and containers, however much that may be."""
        self._others.append(item)
        return []

    def _enter_any(self, kind: type, item: Any) -> list[Any]:
        # Not by isinstance, which asks the item itself for its class.
        if issubclass(kind, nn.Module):
            return self._module(item)
        if issubclass(kind, torch.Tensor):
            return self._tensor(item)
        if kind in (*CONTAINERS, tuple, frozenset):
            return self._items(item)
        if issubclass(kind, types.MethodType | types.BuiltinMethodType):
            return [item.__self__, getattr(item, "__func__", None)]
        if issubclass(kind, functools.partial):
            return [item.func, item.args, item.keywords]
        if issubclass(kind, functools._lru_cache_wrapper):
            return self._cache(item) if owner_of(item) == "user" else []
        if issubclass(kind, ContextVar):  # the run has bindings of its own, but not what they hold
            return [item.get(None)]
        if issubclass(kind, types.FunctionType):
            return self._function(item) if item is self._root or owner_of(item) == "user" else []
        if issubclass(kind, type):
            return self._class(item) if owner_of(item) == "user" else []
        if issubclass(kind, weakref.WeakKeyDictionary | weakref.WeakValueDictionary):
            return self._weak(item)
        if issubclass(kind, types.ModuleType) or kind.__module__.startswith(_OF_THE_PROCESS):
            return []  # of the user's modules only the names that a function uses, see `_function`
        if is_numbers(kind):
            return self._numbers(item)
        if issubclass(kind, IOBase) or kind.__module__ == "queue" or hasattr(kind, "__next__"):
            self.unrestorable[kind.__name__] = None
            return []
        slots = copyreg._slotnames(kind)  # pyright: ignore[reportAttributeAccessIssue]
        own = vars(item) if hasattr(item, "__dict__") else None
        return [*self._items(item), *self._attributes(item, slots), own, kind]

    def _items(self, box: Any) -> list[Any]:
        if issubclass(type(box), CONTAINERS):
            return self._container(box)
        return [*box] if issubclass(type(box), tuple | frozenset) else []

    def _cache(self, function: Any) -> list[Any]:
        """Note the state of a function with an `lru_cache`, which can be emptied and otherwise not be changed."""
        before = function.cache_info()

        def undo() -> None:
            if function.cache_info().misses > before.misses:
                if before.currsize:
                    self.unrestorable["lru_cache"] = None
                else:
                    function.cache_clear()

        self._note(function, undo)
        return [function.__wrapped__]

    def _weak(self, box: Any) -> list[Any]:
        """Note the items of a dict that does not keep its keys or its values alive; return what it does keep."""
        before = [*box.items()]

        def undo() -> None:
            after = [*box.items()]
            same = len(after) == len(before)
            if not (
                same
                and all(
                    a is b for pairs in zip(after, before, strict=True) for a, b in zip(*pairs, strict=True)
                )
            ):
                box.clear()
                box.update(before)

        self._note(box, undo)
        return [value for _, value in before] if isinstance(box, weakref.WeakKeyDictionary) else []

    def _tensor(self, tensor: torch.Tensor) -> list[Any]:
        self._tensors[-1].append(tensor)
        tables = ("_backward_hooks", "_post_accumulate_grad_hooks")
        before = {name: dict(getattr(tensor, name, None) or {}) for name in tables}

        def undo() -> None:
            for name, hooks in before.items():
                table = getattr(tensor, name, None)
                if table is not None and dict(table) != hooks:
                    table.clear()
                    table.update(hooks)

        self._note(tensor, undo)
        return [*super()._tensor(tensor), *vars(tensor).values()]

    def _copies(self, tensor: torch.Tensor) -> bool:
        if self._in_model:
            return self._bytes_left >= 0 and super()._copies(tensor)
        return super()._copies(tensor) and self._affords(tensor.numel() * tensor.element_size())

    def _affords(self, size: int) -> bool:
        """Check whether so many bytes may be copied, and count them."""
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        return True

    def _function(self, function: types.FunctionType) -> list[Any]:
        inside = [function.__defaults__, function.__kwdefaults__, vars(function)]
        for cell in function.__closure__ or ():
            inside += self._attributes(cell, ["cell_contents"])
        if owner_of(function) != "user":
            return inside
        names, spaces = [*_names_in(function.__code__)], [function.__globals__]
        for name in names:  # also what it uses of the user's other modules
            value = function.__globals__.get(name)
            if isinstance(value, types.ModuleType) and owner_of(value) == "user":
                spaces.append(vars(value))
        for space in spaces:
            read = functools.partial(
                lambda space: {name: space[name] for name in names if name in space}, space
            )
            inside += self._bindings(function, read, space.__setitem__, space.__delitem__)
        return inside

    def _class(self, kind: type) -> list[Any]:
        set_, delete = functools.partial(setattr, kind), functools.partial(delattr, kind)
        before = self._bindings(kind, lambda: dict(vars(kind)), set_, delete)
        return [getattr(value, "__func__", value) for value in before] + [*kind.__bases__]

    def _attributes(self, item: Any, names: list[str]) -> list[Any]:
        def read() -> dict[str, Any]:
            found = {}
            for name in names:
                with contextlib.suppress(AttributeError, ValueError):  # a ValueError for an empty cell
                    found[name] = getattr(item, name)
            return found

        set_, delete = functools.partial(setattr, item), functools.partial(delattr, item)
        return self._bindings(item, read, set_, delete) if names else []

    def _bindings(self, item: Any, read: Callable, bind: Callable, unbind: Callable) -> list[Any]:
        """Note what `read` returns: names and their values, which `bind` and `unbind` change."""
        before = read()

        def undo() -> None:
            after = read()
            for name in after.keys() - before.keys():
                unbind(name)
            for name, value in before.items():
                if name not in after or after[name] is not value:
                    bind(name, value)

        self._note(item, undo)
        return [*before.values()]


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function uses, also those of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


NOT_PUT_BACK = Text(
    zh="钩子或模型够得着、却无法恢复原状的对象：{types}",
    en="Within reach of the hooks or the model, and impossible to put back if the run has changed it: {types}",
)
