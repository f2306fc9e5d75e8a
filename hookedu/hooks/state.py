"""Run a model or foreign code and restore the state of the model and of the process."""

import contextlib
import random
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hookedu.hooks.tensors import dense_parts, sizes
from hookedu.language import Text

# The tables of global hooks, such as those of register_module_forward_hook, by their name in torch.
GLOBAL_HOOKS = {
    name: table
    for name, table in vars(nn.modules.module).items()
    if name.startswith("_global_") and isinstance(table, dict)
}
_CONTAINERS = (dict, OrderedDict, defaultdict, list, set, deque)
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_MOST_WEIGHTS = 1_000_000_000  # bytes: the parameters of a larger model are not copied before every run


@contextlib.contextmanager
def restored(model: nn.Module | None = None) -> Iterator[None]:
    """Return a context manager that restores state at its end, also after an exception.

    It restores the RNGs of Python, NumPy and PyTorch, grad mode, the default dtype and the global hooks; and with a
    model, what `Snapshot` lists.
    """
    contents = {name: dict(table) for name, table in GLOBAL_HOOKS.items()}
    python_rng, torch_rng, dtype = random.getstate(), torch.get_rng_state(), torch.get_default_dtype()
    numpy_random: Any = sys.modules.get("numpy.random")  # NumPy loads it when it is first used
    numpy_rng = numpy_random.get_state() if numpy_random else None
    cuda_rng = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    grad_mode = torch.is_grad_enabled()
    with torch._C.DisableTorchFunctionSubclass():  # UninitializedBuffer, for one, refuses to be looked at
        before = None if model is None else Snapshot(model)
    try:
        yield
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(torch_rng)
        torch.cuda.set_rng_state_all(cuda_rng) if cuda_rng else None
        random.setstate(python_rng)
        numpy_random.set_state(numpy_rng) if numpy_random else None
        for name, table in GLOBAL_HOOKS.items():
            table.clear()
            table.update(contents[name])
        if before is not None:
            with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
                before.restore()


class Snapshot:
    """A model before a run. Afterwards `restore` puts back the same objects with the same contents, to the bit.

    That is for each module its class, attributes, modes and hooks, and what is in lists, dicts and sets among the
    attributes; and for each tensor found there (parameters, buffers, others) its form, values and `.grad`. So a lazy
    module is uninitialised again, and an embedding that `max_norm` has rescaled has its old weights.

    Not covered are objects of other classes that a module holds, and the values of the parameters if these take more
    than 1 GB together.
    """

    def __init__(self, model: nn.Module) -> None:
        self._modules: list[tuple[nn.Module, type]] = []
        self._containers: list[tuple[Any, Any]] = []  # each with a shallow copy
        self._tables_of_parameters: set[int] = set()  # by id
        self._tensors: list[TensorBefore] = []
        self._memory: dict[int, tuple[Any, Any]] = {}  # by storage, as tensors may share one: it and a copy
        weights = sum(p.numel() * p.element_size() for p in model.parameters() if not is_lazy(p))
        seen: set[int] = set()
        waiting: list[Any] = [model]  # no recursion, as modules may be nested deeply
        while waiting:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, nn.Module):
                self._modules.append((item, type(item)))
                self._tables_of_parameters.add(id(item._parameters))
                waiting.append(vars(item))
            elif isinstance(item, torch.Tensor):
                copied = weights <= _MOST_WEIGHTS or not isinstance(item, nn.Parameter)
                waiting += self._add_tensor(item, copied)
            elif type(item) in _CONTAINERS:
                self._containers.append((item, item.copy()))
                waiting += item.values() if isinstance(item, dict) else item

    def _add_tensor(self, tensor: torch.Tensor, copied: bool) -> list[torch.Tensor]:
        """Add a tensor; return what belongs to it: its gradient, and the tensors inside a wrapper such as DTensor."""
        before = TensorBefore(tensor)
        self._tensors.append(before)
        inside = [] if before.grad is None else [before.grad]
        if is_traceable_wrapper_subclass(tensor):
            inside += [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]] if copied else []
        elif copied:
            for part in dense_parts(tensor.data):
                storage = part.untyped_storage()
                if storage.device.type != "meta":
                    self._memory.setdefault(storage._cdata, (storage, storage.clone()))
        return inside

    def restore(self) -> None:
        """Put everything back; what has not changed is not touched."""
        for module, kind in self._modules:
            if type(module) is not kind:
                module.__class__ = kind
        for container, before in self._containers:
            if id(container) in self._tables_of_parameters:
                # FSDP swaps parameters and keeps account of which are in place, so only their names are put back.
                before = {name: container.get(name, parameter) for name, parameter in before.items()}
            if not _same_items(container, before):
                container.clear()
                container.update(before) if hasattr(container, "update") else container.extend(before)
        for tensor in self._tensors:
            tensor.restore()
        for storage, before in self._memory.values():
            if storage.nbytes() != before.nbytes():
                storage.resize_(before.nbytes())
            if not torch.equal(_bytes_of(storage), _bytes_of(before)):
                storage.copy_(before)  # not through a tensor: that would be refused or change its `_version`


def _same_items(container: Any, before: Any) -> bool:
    """Check whether a container holds the very objects of its copy, in the same order."""
    if len(container) != len(before):
        return False
    if isinstance(container, set):
        return container == before
    pairs = [(container, before)]
    if isinstance(container, dict):
        pairs = [(container.keys(), before.keys()), (container.values(), before.values())]
    return all(one is other for now, then in pairs for one, other in zip(now, then, strict=True))


class TensorBefore:
    """A tensor before a run, but for the memory of its values."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.kind, self.is_leaf = tensor, type(tensor), tensor.is_leaf
        self.data = tensor.data  # another tensor on the same memory, which keeps the form
        if tensor.is_mkldnn or self.data.layout in _COMPRESSED:  # these would share even the form
            self.data = self.data.clone()
        self.form = _form(tensor.data)
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
        if not self.is_leaf:
            return
        # Overwritten with a value that requires a gradient. Autograd cannot detach a view in place: it stays so.
        if not (tensor.is_leaf or tensor._is_view()):
            tensor.detach_()
        if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
            tensor.requires_grad_(self.requires_grad)
        if tensor.grad is not self.grad:
            tensor.grad = self.grad


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


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


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


ONE_INPUT = Text(
    zh="模型只得到一个输入，类型是 `{type}`；如果其中各项应当分别作为模型的输入，请写 `model, {stars}x` 代替 `model, x`。"
    "模型报的错是：{error}",
    en="the model got one input, a `{type}`; if its items are the inputs, write `model, {stars}x` in the place of "
    "`model, x`. The model's own error: {error}",
)
