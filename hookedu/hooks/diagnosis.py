"""diagnose(): faults of a model's hooks, found by inspecting them and by one instrumented run."""

import contextlib
import functools
import html
import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hookedu.hooks.inspection import Hook, list_hooks
from hookedu.hooks.modules import is_compiled, modules_by_name, unwrap, why_never_called
from hookedu.hooks.scopes import Scope
from hookedu.hooks.state import restored
from hookedu.hooks.tensors import fresh, map_tensors, storage_bytes, tensors_in
from hookedu.language import Text
from hookedu.tables import size_text

_BACKWARD = ("backward", "legacy_backward", "backward_pre", "param_grad", "post_accumulate")
_WATCHED = ("forward_pre", "forward", "global forward_pre", "global forward", *_BACKWARD)


@dataclass(frozen=True)
class Finding:
    """One fault of a model's hooks.

    Attributes
    ----------
    id : str
        Kind of fault, a key of `SAYS`.
    says : Text
        The fault and its remedy in both languages.
    hook : Hook or None
        The hook at fault, if it is a single one.
    """

    id: str
    says: Text
    hook: Hook | None = None


class Findings(list[Finding]):
    """The faults found, most serious first; prints as text in both languages."""

    def __repr__(self) -> str:
        return "\n\n".join(str(finding.says) for finding in self) or str(ALL_WELL)

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li title={html.escape(repr(finding.id))}>{finding.says.html()}</li>" for finding in self
        )
        return f"<ul>{items}</ul>" if self else ALL_WELL.html()


def diagnose(model: nn.Module, *inputs: Any, kept: Any = None, **kwargs: Any) -> Findings:
    """Find faults of the hooks that are registered on a model, its parameters and globally.

    Without inputs, the hooks are only inspected: functions registered twice, hooks that block pickling, kept
    tensors that hold an autograd graph alive, and leftover global hooks are found. With inputs, the model
    runs as well, and four more faults are found: hooks that never fire, hooks added after compilation, hooks
    that return a value by accident, and kept outputs that a later in-place operation changes.

    Hooks of PyTorch itself and of hookedu are not examined.

    Parameters
    ----------
    model : torch.nn.Module
        The model whose hooks to examine.
    *inputs : object
        Positional arguments for a run of the model, tensors or nested structures of them. The model gets
        copies.
    kept : object, optional
        A container in which hooks keep tensors, if they do not reach it by their closure, defaults, object or
        globals, where kept tensors are looked for in any case.
    **kwargs : object
        Keyword arguments for a run of the model.

    Returns
    -------
    Findings
        The faults, most serious first; an empty list if there are none. Prints as text in both languages.
        Each entry has ``id``, the kind of fault; ``says``, a ``Text`` with fault and remedy; and ``hook``,
        the hook at fault, or None.

    Raises
    ------
    TypeError
        If the model is not a ``torch.nn.Module``, or is TorchScript.
    ValueError
        If the model is a ``DataParallel`` on several GPUs.

    Notes
    -----
    With inputs, the model runs forward once, compiled models twice, and backward if there are hooks for that.
    Afterwards buffers, gradients, the variables and containers of the hooks, and the RNGs of Python and
    PyTorch are as they were. What the model or a hook raises is propagated.

    Examples
    --------
    A notebook cell that registers a hook has been run twice:

    >>> from torch import nn
    >>> from hookedu import diagnose
    >>> def report(module, args, output):
    ...     print(tuple(output.shape))
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> for _ in range(2):
    ...     handle = model[1].register_forward_hook(report)
    >>> fault = diagnose(model)[0]
    >>> fault.id
    'registered_twice'
    >>> print(fault.says.en)
    the same function `report:1` is registered 2 times as a forward hook on 1: was a cell run again? ...
    """
    inner = unwrap(model)
    hooks = [hook for hook in list_hooks(model) if hook.owner not in ("torch", "hookedu")]
    scopes = {hook.id: Scope(hook.callable) for hook in hooks}
    if kept is not None:
        scopes[-1] = Scope.of_values({"kept": kept})
    found: list[Finding] = []
    if inputs or kwargs:
        found += _by_running(model, inner, hooks, scopes, *fresh((inputs, kwargs)))
    found += _registered_twice(hooks)
    found += _holding_graphs(inner, scopes)
    found += [_finding("global_leftover", hook) for hook in hooks if hook.path is None]
    found += _blocking_pickle(hooks)
    return Findings(sorted(found, key=lambda finding: list(SAYS).index(finding.id)))


def _finding(id: str, hook: Hook, **values: Any) -> Finding:
    where = "(process)" if hook.path is None else hook.path or "(model)"
    source = f"{hook.function}:{hook.line}" if hook.line else hook.function
    return Finding(id, SAYS[id].format(hook=source, kind=hook.kind, where=where, **values), hook)


# -- by inspection ---------------------------------------------------------------------------------------------


def _registered_twice(hooks: list[Hook]) -> Iterator[Finding]:
    groups: dict[tuple, list[list[Hook]]] = {}
    for hook in hooks:
        same_place = groups.setdefault((hook.kind, hook.path), [])
        alike = next((group for group in same_place if _same(group[0].callable, hook.callable)), None)
        same_place.append([hook]) if alike is None else alike.append(hook)
    for same_place in groups.values():
        for group in same_place:
            if len(group) > 1:
                yield _finding("registered_twice", group[0], n=len(group))


def _same(a: Any, b: Any) -> bool:
    """Check whether two callables do the same: one function, or one that a cell has defined twice."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, functools.partial):
        keywords = tuple(sorted(a.keywords.items())), tuple(sorted(b.keywords.items()))
        return _same(a.func, b.func) and _same(a.args, b.args) and _same(*keywords)
    if inspect.ismethod(a):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    if inspect.isfunction(a):
        return a.__code__ == b.__code__ and _same(_captured(a), _captured(b))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, str | int | float | bool) and a == b  # containers count as different even if equal


def _captured(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Return a function's defaults and the contents of its closure."""
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    return tuple(values)


def _blocking_pickle(hooks: list[Hook]) -> Iterator[Finding]:
    for hook in hooks:
        if hook.path is None or hook.kind in ("param_grad", "post_accumulate"):
            continue  # not pickled with the model
        try:
            pickle.Pickler(_Nowhere()).dump(hook.callable)
        except Exception as error:  # pickling runs arbitrary code, and any error would stop torch.save, too
            yield _finding("blocks_pickling", hook, error=f"{type(error).__name__}: {error}")


class _Nowhere(io.RawIOBase):
    """A file that discards what is written to it."""

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def _holding_graphs(model: nn.Module, scopes: dict[int, Scope]) -> Iterator[Finding]:
    own = {t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers()] if not _lazy(t)}
    attached: dict[str, dict[int, torch.Tensor]] = {}
    for scope in scopes.values():
        for name, tensor in scope.tensors():
            if tensor.grad_fn is not None:
                attached.setdefault(name, {})[id(tensor)] = tensor
    for name, tensors in attached.items():
        size = size_text(graph_bytes(list(tensors.values()), own))
        yield Finding("holds_graph", SAYS["holds_graph"].format(name=name, n=len(tensors), size=size))


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
    return storage_bytes(t for t in saved if t.untyped_storage()._cdata not in (without or ()))


def _lazy(tensor: torch.Tensor) -> bool:
    return nn.parameter.is_lazy(tensor)


# -- by running ------------------------------------------------------------------------------------------------


class _Watch:
    """Wrappers around hooks: they call each hook and note that it fired, and what it returned and kept."""

    def __init__(self, hooks: list[Hook], scopes: dict[int, Scope]) -> None:
        self.hooks = [hook for hook in hooks if hook.kind in _WATCHED]
        self.scopes = scopes
        self.ran_backward = False
        # All by id of the hook.
        self.fired: set[int] = set()
        self.skipped_by_compiled_code: set[int] = set()  # fired only in the uncompiled run
        self.returned: dict[int, str] = {}  # type of a value that was returned by accident
        self.overwritten: set[int] = set()  # a tensor that the hook keeps has been changed in place
        # (hook, id of a kept tensor) -> an alias of the output that shares its memory, and the alias's
        # version then
        self._kept: dict[tuple[int, int], tuple[torch.Tensor, int]] = {}

    def run(self, model: nn.Module, inner: nn.Module, inputs: tuple, kwargs: dict) -> None:
        """Run the model with the wrappers registered, and restore whatever that has changed."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(restored(inner))
            for scope in self.scopes.values():
                stack.enter_context(scope.restored())
            stack.enter_context(self.in_place_of_hooks())
            fired_compiled = None
            if is_compiled(model):
                model(*inputs, **kwargs)
                fired_compiled, self.fired = self.fired, set()
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            output = model(*inputs, **kwargs)
            heads = [t for t in tensors_in(output) if t.requires_grad]
            self.ran_backward = bool(heads) and any(hook.kind in _BACKWARD for hook in self.hooks)
            if self.ran_backward:
                torch.autograd.backward([head.sum() for head in heads])
            if fired_compiled is not None:
                self.skipped_by_compiled_code = self.fired - fired_compiled
            # Before buffers and gradients are restored, which may change tensors in place.
            self.overwritten = {h for (h, _), (alias, then) in self._kept.items() if alias._version != then}

    @contextlib.contextmanager
    def in_place_of_hooks(self) -> Iterator[None]:
        """Replace each hook by its wrapper within a context."""
        try:
            for hook in self.hooks:
                hook._tables[0][hook.id] = functools.partial(self._call, hook)
            yield
        finally:
            for hook in self.hooks:
                hook._tables[0][hook.id] = hook.callable

    def _call(self, hook: Hook, *args: Any) -> Any:
        self.fired.add(hook.id)
        result = hook.callable(*args)
        if hook.kind.endswith("forward"):
            self._note_kept(hook, args[-1])
        if result is not None and self._unmeant(hook, args, result):
            self.returned[hook.id] = type(result).__name__
            return None  # the run continues as if the hook had returned None
        return result

    def _unmeant(self, hook: Hook, args: tuple[Any, ...], result: Any) -> bool:
        """Check whether a returned value is an accident.

        It is if it has another structure than the value that it would replace, or if it comes from a lambda,
        which always returns something.
        """
        if hook.kind.endswith("forward_pre"):
            without_tensors = _has_tensors(args[1:]) and not _has_tensors(result)
            return result is not args[1] and (without_tensors or _is_lambda(hook))
        if not hook.kind.endswith("forward") or result is args[-1]:
            return False  # PyTorch itself checks what backward hooks return
        output = args[-1]
        cut = any(t.requires_grad for t in tensors_in(output)) and not any(
            t.requires_grad for t in tensors_in(result)
        )
        return _form(result) != _form(output) or cut or _is_lambda(hook)

    def _note_kept(self, hook: Hook, output: Any) -> None:
        """Note the tensors within reach of the hook that share memory with the output."""
        for tensor in tensors_in(output):
            if tensor.is_inference():
                continue
            storage = tensor.untyped_storage()._cdata
            for scope_id in (hook.id, -1):
                scope = self.scopes.get(scope_id)
                for _, kept in scope.tensors() if scope else ():
                    if not kept.is_sparse and kept.untyped_storage()._cdata == storage:
                        self._kept.setdefault((hook.id, id(kept)), (tensor.detach(), tensor._version))


def _by_running(
    model: nn.Module,
    inner: nn.Module,
    hooks: list[Hook],
    scopes: dict[int, Scope],
    inputs: tuple,
    kwargs: dict,
) -> Iterator[Finding]:
    watch = _Watch(hooks, scopes)
    watch.run(model, inner, inputs, kwargs)
    named = modules_by_name(inner)
    for hook in watch.hooks:
        of_forward = hook.kind not in _BACKWARD
        if hook.id in watch.overwritten:
            yield _finding("overwritten", hook)
        if hook.id in watch.returned:
            yield _finding("returns_value", hook, type=watch.returned[hook.id])
        if hook.id not in watch.fired and (watch.ran_backward or of_forward):
            yield _finding("never_fired", hook, reason=_why_not_fired(hook, inner, named))
        if hook.id in watch.skipped_by_compiled_code and of_forward:
            yield _finding("after_compile", hook)


def _why_not_fired(hook: Hook, model: nn.Module, named: dict[str, nn.Module]) -> Text:
    if hook.path in named and hook.kind not in _BACKWARD:
        return why_never_called(named, named[hook.path], hook.path or "(model)")
    return GRADIENT_NEVER_CAME


def _form(value: Any) -> Any:
    """Return the type and structure of a value, with shape and dtype of its tensors."""
    return type(value), map_tensors(lambda tensor: (tuple(tensor.shape), tensor.dtype), value)


def _has_tensors(value: Any) -> bool:
    return next(tensors_in(value), None) is not None


def _is_lambda(hook: Hook) -> bool:
    return getattr(hook.callable, "__name__", "") == "<lambda>"


# Most serious first: wrong numbers, then missing events, then mere nuisances.
SAYS = {
    "overwritten": Text(
        zh="`{hook}`（{where}）保留的输出后来被就地操作改掉了：请保留 `output.detach().clone()`",
        en="a later in-place op changed the output that `{hook}` ({where}) keeps: keep `output.detach().clone()`",
    ),
    "returns_value": Text(
        zh="`{hook}`（{where}，{kind}）返回了一个 `{type}`，它会替换掉模块的值；若只想观察，就不要返回任何东西",
        en="`{hook}` ({where}, {kind}) returns a `{type}`, which replaces the module's value; to watch only, return "
        "nothing",
    ),
    "after_compile": Text(
        zh="`{hook}`（{where}）是编译之后才注册的，编译后的代码不会调用它：请在第一次调用之前注册，"
        '或在 `torch.compiler.set_stance("force_eager")` 下运行',
        en="`{hook}` ({where}) was registered after compilation and compiled code never calls it: register before the "
        'first call, or run under `torch.compiler.set_stance("force_eager")`',
    ),
    "never_fired": Text(
        zh="`{hook}`（{where}，{kind}）在这次运行中没有触发。{reason}",
        en="`{hook}` ({where}, {kind}) did not fire in this run. {reason}",
    ),
    "registered_twice": Text(
        zh="同一个函数 `{hook}` 在 {where} 上作为 {kind} 钩子注册了 {n} 次：单元格运行了多次？请先用句柄的 `remove()` 取下旧的",
        en="the same function `{hook}` is registered {n} times as a {kind} hook on {where}: was a cell run again? "
        "Take the old one off with its handle's `remove()`",
    ),
    "holds_graph": Text(
        zh="`{name}` 里保留了 {n} 个仍连着计算图的张量，为反向传播占着 {size}：请保留 `.detach()` 之后的张量",
        en="`{name}` keeps {n} tensors attached to their graph, which holds {size} for backward: keep `.detach()` of them",
    ),
    "global_leftover": Text(
        zh="`{hook}` 是一个全局钩子（{kind}），对每个模型都会触发；若不再需要，请用句柄取下",
        en="`{hook}` is a global hook ({kind}) and fires for every model; take it off by its handle if it is not needed",
    ),
    "blocks_pickling": Text(
        zh="`{hook}`（{where}）无法被 pickle，`torch.save(model)` 会失败（{error}）：请保存 `model.state_dict()`",
        en="`{hook}` ({where}) cannot be pickled, so `torch.save(model)` fails ({error}): save `model.state_dict()`",
    ),
}
ALL_WELL = Text(zh="没有发现钩子的问题", en="no fault found with the hooks")
GRADIENT_NEVER_CAME = Text(
    zh="反向传播没有经过这里",
    en="No gradient came by in the backward pass",
)
