"""Note the state of objects and put it back; run a model as its hooks need it."""

import contextlib
import copy
import functools
import itertools
import operator
import random
import sys
import weakref
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hookedu.hooks.tensors import dense_parts, described, shape_text, sizes
from hookedu.language import Text

# The tables of global hooks, such as those of register_module_forward_hook, by their name in torch.
GLOBAL_HOOKS = {
    name: table
    for name, table in vars(nn.modules.module).items()
    if name.startswith("_global_") and isinstance(table, dict)
}
# Those of all optimizers, such as those of register_optimizer_step_pre_hook. (`torch.optim` deletes the name of this module.)
GLOBAL_STEP_HOOKS = {
    name: table
    for name, table in vars(sys.modules["torch.optim.optimizer"]).items()
    if name.startswith("_global_") and isinstance(table, dict)
}
CONTAINERS: tuple[Any, ...] = (OrderedDict, defaultdict, dict, list, set, deque)
_ARRAYS = (bytearray, array)
_ATOMS = (str, bytes, int, float, complex, bool, type(None), torch.Size, torch.dtype, torch.device)
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
# Bytes: the parameters of a larger model, or a larger array, are not copied before every run.
_MOST_WEIGHTS = 1_000_000_000


class Snapshot:
    """Objects before a run. Afterwards `restore` puts back the same objects with the same contents, to the bit.

    That is for each module its class, attributes, modes and hooks, and what is in lists, dicts, sets and arrays among the
    attributes; the state of generators of random numbers; and for each tensor found there (parameters, buffers, others)
    its form, values, version and `.grad`. So a lazy module is uninitialised again, and an embedding that `max_norm` has
    rescaled has its old weights.

    Not covered are objects of other classes that a module holds, which `Reach` adds, and the values of the parameters,
    or of an array, if these take more than 1 GB.

    Attributes
    ----------
    unrestorable : dict of str to Exception or None
        The types of what could not be put back, with the error where there was one.
    """

    def __init__(self, model: nn.Module | None = None) -> None:
        self.unrestorable: dict[str, Exception | None] = {}
        self._undo: list[tuple[str, Callable[[], object]]] = []  # each with the type of what it puts back
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is used again
        self._storages: set[int] = set()  # those that have been copied; several tensors may share one
        parameters = () if model is None else model.parameters()
        weights = sum(p.numel() * p.element_size() for p in parameters if not is_lazy(p))
        self._copies_weights = weights <= _MOST_WEIGHTS

    def add(self, *roots: Any) -> "Snapshot":
        """Note these objects, and what they refer to, as they are now."""
        waiting = [*roots]  # no recursion, as modules may be nested deeply
        with torch._C.DisableTorchFunctionSubclass():  # UninitializedBuffer, for one, refuses to be looked at
            while waiting:
                item = waiting.pop()
                if id(item) not in self._seen and not issubclass(type(item), _ATOMS):
                    self._seen[id(item)] = item
                    waiting += self._enter(item)
        return self

    def restore(self) -> None:
        """Put everything back; what has not changed is not touched."""
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            for kind, undo in self._undo:
                try:
                    undo()
                except Exception as error:  # an object may refuse to be set
                    self.unrestorable[kind] = error

    def _note(self, item: Any, undo: Callable[[], object]) -> None:
        self._undo.append((type(item).__name__, undo))

    def _enter(self, item: Any) -> list[Any]:
        """Note how to put one object back; return what it refers to."""
        if isinstance(item, nn.Module):
            return self._module(item)
        if isinstance(item, torch.Tensor):
            return self._tensor(item)
        if type(item) in CONTAINERS:
            return self._container(item)
        return self._numbers(item) if is_numbers(type(item)) else self._other(item)

    def _other(self, item: Any) -> list[Any]:
        """Note how to put back an object of any other class; return what it refers to."""
        return []

    def _module(self, module: nn.Module) -> list[Any]:
        kind, parameters = type(module), module._parameters
        names = dict(parameters)

        def undo() -> None:
            if type(module) is not kind:
                module.__class__ = kind
            if isinstance(parameters, dict):  # those of a scripted module are in something else
                now = {name: _unless_swapped(parameters.get(name), before) for name, before in names.items()}
                _refill(dict, parameters, _flat(dict, now))

        self._note(module, undo)
        self._seen[id(parameters)] = parameters
        for name, table in vars(module).items():
            if "_hooks" in name and type(table) in CONTAINERS:  # put back, without a look at the hooks
                self._seen[id(table)] = table
                self._container(table)
        # A scripted module has its children in something else than a dict, too.
        return [vars(module), *names.values(), *module._modules.values()]

    def _container(self, box: Any) -> list[Any]:
        kind = next(base for base in CONTAINERS if issubclass(type(box), base))
        before = _flat(kind, box)
        self._note(box, functools.partial(_refill, kind, box, before))
        return before

    def _tensor(self, tensor: torch.Tensor) -> list[Any]:
        """Note a tensor; return what belongs to it: its gradient, and the tensors inside a wrapper such as DTensor."""
        before = TensorBefore(tensor)
        self._note(tensor, before.restore)
        inside = [] if before.grad is None else [before.grad]
        if not self._copies(tensor):
            return inside
        if is_traceable_wrapper_subclass(tensor):
            return inside + [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        for part in dense_parts(tensor.data):
            storage = part.untyped_storage()
            if storage.device.type != "meta" and storage._cdata not in self._storages:
                self._storages.add(storage._cdata)
                self._note(tensor, functools.partial(_put_back, storage, storage.clone()))
        return inside

    def _copies(self, tensor: torch.Tensor) -> bool:
        """Check whether to copy the values of a tensor."""
        return self._copies_weights or not isinstance(tensor, nn.Parameter)

    def _numbers(self, item: Any) -> list[Any]:
        """Note a generator of random numbers, or an array of NumPy or of Python."""
        for get, put in (("get_state", "set_state"), ("getstate", "setstate")):
            if hasattr(item, get):
                self._note(item, functools.partial(getattr(item, put), getattr(item, get)()))
        if hasattr(item, "bit_generator"):
            bits = item.bit_generator
            self._note(item, functools.partial(setattr, bits, "state", bits.state))
        elif isinstance(item, _ARRAYS):
            self._array(item, memoryview(item).nbytes, slice(None))
        elif hasattr(item, "nbytes") and item.flags.writeable:
            self._array(item, item.nbytes, ...)
            return [*item.flat] if item.dtype.hasobject else []
        return []

    def _array(self, array: Any, size: int, whole: Any) -> None:
        """Note the contents of an array of so many bytes, if these may be copied."""
        if size <= _MOST_WEIGHTS:
            self._note(array, functools.partial(array.__setitem__, whole, copy.copy(array)))
        else:
            self.unrestorable[type(array).__name__] = None


def _unless_swapped(now: Any, before: Any) -> Any:
    """Return a parameter from before a run, or the present one if FSDP has swapped it, which keeps account of that.

    FSDP has a parameter of another type for each state.
    """
    swapped = now is not None and before is not None and type(now) is not type(before)
    return now if swapped else before


def is_numbers(kind: type) -> bool:
    """Check whether a class is one of generators of random numbers or arrays."""
    return issubclass(kind, (torch.Generator, random.Random, *_ARRAYS)) or kind.__module__.startswith("numpy")


def _flat(kind: Any, box: Any) -> list[Any]:
    """Return the items of a list, set or deque, or keys and values of a dict in turn."""
    return (
        [*itertools.chain.from_iterable(kind.items(box))] if issubclass(kind, dict) else [*kind.__iter__(box)]
    )


def _refill(kind: Any, box: Any, before: list[Any]) -> None:
    """Give a container its items back by the methods of `kind`: a subclass may check or refuse what it is given."""
    after = _flat(kind, box)
    if len(after) != len(before) or not all(map(operator.is_, after, before)):
        kind.clear(box)
        if issubclass(kind, dict):
            kind.update(box, zip(before[::2], before[1::2], strict=True))
        else:
            (kind.update if kind is set else kind.extend)(box, before)


def _put_back(storage: torch.UntypedStorage, before: torch.UntypedStorage) -> None:
    if storage.nbytes() != before.nbytes():
        storage.resize_(before.nbytes())
    # Words of eight bytes are compared four times as fast as bytes; the last ones need not fill a word.
    same = torch.equal(_memory(storage, torch.int64), _memory(before, torch.int64))
    if not (same and torch.equal(_memory(storage)[-8:], _memory(before)[-8:])):
        storage.copy_(before)  # not through a tensor: that would be refused or change its `_version`


class TensorBefore:
    """A tensor before a run, but for the memory of its values."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.kind, self.is_leaf = tensor, type(tensor), tensor.is_leaf
        self.data = tensor.data  # another tensor on the same memory, which keeps the form
        if tensor.is_mkldnn or self.data.layout in _COMPRESSED:  # these would share even the form
            self.data = self.data.clone()
        self.form, self.version = _form(tensor.data), None if tensor.is_inference() else tensor._version
        self.requires_grad, self.grad = tensor.requires_grad, tensor.grad if tensor.is_leaf else None

    def restore(self) -> None:
        tensor = self.tensor
        if type(tensor) is not self.kind:  # a lazy parameter has become a real one
            tensor.__class__ = self.kind
        if _form(tensor.data) != self.form:
            if tensor.layout in _COMPRESSED:  # where the assignment below would do nothing
                tensor.resize_as_sparse_(self.data).copy_(self.data)
            tensor.data = self.data
        elif tensor.is_mkldnn and not torch.equal(tensor.data.to_dense(), self.data.to_dense()):
            tensor.data.copy_(self.data)  # it has no storage
        if self.is_leaf:
            # Overwritten with a value that requires a gradient. Autograd cannot detach a view in place: it stays so.
            if not (tensor.is_leaf or tensor._is_view()):
                tensor.detach_()
            if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
                tensor.requires_grad_(self.requires_grad)
            if tensor.grad is not self.grad:
                tensor.grad = self.grad
        if self.version is not None and tensor._version != self.version:
            # A graph that has saved it can still run backward, as its values are the same, too.
            torch_c: Any = torch._C
            torch_c._autograd._unsafe_set_version_counter((tensor,), (self.version,))


def _form(data: torch.Tensor) -> tuple[Any, ...]:
    """Return what `tensor.data = ...` and in-place operations on the shape change."""
    if is_traceable_wrapper_subclass(data):
        return ()
    detail: Any = None
    if data.layout is torch.strided and not data.is_nested:
        detail = data.stride()
    elif data.layout is torch.sparse_coo:
        detail = data.is_coalesced()
    inside = [(part.untyped_storage()._cdata, sizes(part)) for part in dense_parts(data)]
    return data.layout, data.dtype, sizes(data), detail, inside


def _memory(storage: torch.UntypedStorage, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return torch.empty(0, dtype=dtype, device=storage.device).set_(storage)


@contextlib.contextmanager
def deeper(paths: Iterable[str]) -> Iterator[None]:
    """Leave room for the frames that hooks add to each level of nested modules with these dotted names."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 8 * (2 + max((path.count(".") for path in paths), default=0)))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def call_model(model: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return `model(*inputs, **kwargs)`; if one tuple or dict was given for several inputs, the error says so."""
    try:
        return model(*inputs, **kwargs)
    except (TypeError, AttributeError) as error:
        only = inputs[0] if len(inputs) == 1 and not kwargs else None
        stars = "**" if hasattr(only, "keys") else "*" if type(only) is tuple else None
        if stars is None or (isinstance(error, AttributeError) and error.obj is not only):
            raise
        raise TypeError(str(ONE_INPUT.format(type=type(only).__name__, stars=stars, error=error))) from error


def single_number(value: Any, name: str) -> torch.Tensor:
    """Return a tensor from which backward can start; the errors call it `name`."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(str(NO_TENSOR.format(name=name, got=described(value))))
    if value.numel() != 1:
        raise ValueError(str(NOT_ONE_NUMBER.format(name=name, shape=shape_text(sizes(value)))))
    if value.is_complex():
        raise ValueError(str(COMPLEX.format(name=name)))
    return value


# Who needs compiled models to run uncompiled at present, and the changes of stance that serve them all. Each of several
# recorders setting and restoring the stance by itself would restore what another had set.
_uncompiled: set[int] = set()
_changes: list[Any] = []


def run_uncompiled(holder: object) -> Callable[[], object]:
    """Let compiled models run uncompiled until `holder` is gone or the returned function is called.

    When the last of several holders has ended, the stance of torch's compiler is again what it was before the first,
    unless somebody else has set another one since.
    """
    if not (_changes and torch._dynamo.eval_frame._stance is _changes[-1].stance):
        _changes.append(torch.compiler.set_stance("force_eager"))
    _uncompiled.add(id(holder))
    release = weakref.finalize(holder, _release, id(holder))
    release.atexit = False  # torch may have been taken apart by then
    return release


def _release(holder: int) -> None:
    _uncompiled.discard(holder)
    while _changes and not _uncompiled:
        change = _changes.pop()
        if torch._dynamo.eval_frame._stance is change.stance:
            change.__exit__(None, None, None)
        # A with block of somebody else that began after the change will put its stance back: make it the earlier one.
        vars(change.stance).update(vars(change.prev))


NO_TENSOR = Text(
    zh="{name} 应当是一个张量，里面是一个数，得到的是 {got}：不要用 `.item()`、`float()`、`.numpy()` 取出来，那样就离开了 autograd。",
    en="{name} should be a tensor with a single number, got {got}: leave out `.item()`, `float()` and `.numpy()`, which lead "
    "out of autograd.",
)
NOT_ONE_NUMBER = Text(
    zh="反向传播要从一个数出发，{name} 的形状却是 {shape}；可以加上 `.sum()` 或 `.mean()`。",
    en="Backward starts from a single number, but {name} has the shape {shape}; add `.sum()` or `.mean()`.",
)
COMPLEX = Text(
    zh="反向传播要从一个实数出发，{name} 却是复数；可以加上 `.abs()` 或 `.real`。",
    en="Backward starts from a real number, but {name} is complex; add `.abs()` or `.real`.",
)
ONE_INPUT = Text(
    zh="模型只得到一个输入，类型是 `{type}`；如果其中各项应当分别作为模型的输入，请写 `model, {stars}x` 代替 `model, x`。"
    "模型报的错是：{error}",
    en="the model got one input, a `{type}`; if its items are the inputs, write `model, {stars}x` in the place of "
    "`model, x`. The model's own error: {error}",
)
