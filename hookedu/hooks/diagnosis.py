"""diagnose(): what is wrong with the hooks of a model, found by looking at them and by one watched run."""

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
    """One fault: its id (a key of `SAYS`), what to tell about it, and the hook at fault where there is one."""

    id: str
    says: Text
    hook: Hook | None = None


class Findings(list[Finding]):
    """The faults found, the gravest first; prints as text in both languages."""

    def __repr__(self) -> str:
        return "\n\n".join(str(finding.says) for finding in self) or str(ALL_WELL)

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li title={html.escape(repr(finding.id))}>{finding.says.html()}</li>" for finding in self
        )
        return f"<ul>{items}</ul>" if self else ALL_WELL.html()


def diagnose(model: nn.Module, *inputs: Any, kept: Any = None, **kwargs: Any) -> Findings:
    """Find faults of a model's hooks; an empty list where there is none.

    Without inputs: functions registered twice, hooks that block pickling, kept tensors that hold a graph alive,
    global hooks left over. With inputs the model runs once more (compiled models twice), and a backward pass where
    there are hooks for one; then also: hooks that never fire, hooks added after compilation, hooks that return a
    value they probably did not mean to, kept outputs that a later in-place op changes. What hooks keep is looked
    for in their closures, defaults, objects and globals; `kept` names one more container. The run leaves no mark:
    containers, buffers, gradients and RNGs are put back. What the model raises is raised.
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


# -- by looking ------------------------------------------------------------------------------------------------


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
    """Whether two callables do the same: one function, or one that a cell run twice has defined twice."""
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
    return isinstance(a, str | int | float | bool) and a == b  # two stores that are equal now are two stores


def _captured(function: Callable[..., Any]) -> tuple[Any, ...]:
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell that is empty still
            values.append(cell.cell_contents)
    return tuple(values)


def _blocking_pickle(hooks: list[Hook]) -> Iterator[Finding]:
    for hook in hooks:
        if hook.path is None or hook.kind in ("param_grad", "post_accumulate"):
            continue  # pickle leaves these out
        try:
            pickle.Pickler(_Nowhere()).dump(hook.callable)
        except Exception as error:  # pickling runs code of all sorts, and any error would stop torch.save too
            yield _finding("blocks_pickling", hook, error=f"{type(error).__name__}: {error}")


class _Nowhere(io.RawIOBase):
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
    """Bytes that the graphs behind some tensors keep for backward; `without`: storages (_cdata) not to count."""
    todo, seen, saved = [t.grad_fn for t in tensors if t.grad_fn is not None], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo += [parent for parent, _ in node.next_functions if parent is not None]
        for name in dir(node):
            if name.startswith("_saved_") or name == "saved_tensors":
                with contextlib.suppress(RuntimeError):  # freed by backward, or changed in place since
                    saved += tensors_in(getattr(node, name))
    return storage_bytes(t for t in saved if t.untyped_storage()._cdata not in (without or ()))


def _lazy(tensor: torch.Tensor) -> bool:
    return nn.parameter.is_lazy(tensor)


# -- by running ------------------------------------------------------------------------------------------------


class _Watch:
    """Stands in for every hook during the run: calls it, and notes that it fired, what it returned and kept."""

    def __init__(self, hooks: list[Hook], scopes: dict[int, Scope]) -> None:
        self.hooks = [hook for hook in hooks if hook.kind in _WATCHED]
        self.scopes = scopes
        self.fired: set[int] = set()
        self.returned: dict[int, str] = {}
        # (hook, id of a kept tensor) -> an alias of the output it shares memory with, and its version then
        self.kept: dict[tuple[int, int], tuple[torch.Tensor, int]] = {}

    @contextlib.contextmanager
    def in_place_of_hooks(self) -> Iterator[None]:
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
            return None  # the run goes on as if it had not been returned
        return result

    def _unmeant(self, hook: Hook, args: tuple[Any, ...], result: Any) -> bool:
        """A value of another form than what it would replace, or that a lambda could not help returning."""
        if hook.kind.endswith("forward_pre"):
            without_tensors = _has_tensors(args[1:]) and not _has_tensors(result)
            return result is not args[1] and (without_tensors or _is_lambda(hook))
        if not hook.kind.endswith("forward") or result is args[-1]:
            return False  # of backward hooks PyTorch checks the form itself
        output = args[-1]
        cut = any(t.requires_grad for t in tensors_in(output)) and not any(
            t.requires_grad for t in tensors_in(result)
        )
        return _form(result) != _form(output) or cut or _is_lambda(hook)

    def _note_kept(self, hook: Hook, output: Any) -> None:
        for tensor in tensors_in(output):
            if tensor.is_inference():
                continue
            storage = tensor.untyped_storage()._cdata
            for scope_id in (hook.id, -1):
                scope = self.scopes.get(scope_id)
                for _, kept in scope.tensors() if scope else ():
                    if not kept.is_sparse and kept.untyped_storage()._cdata == storage:
                        self.kept.setdefault((hook.id, id(kept)), (tensor.detach(), tensor._version))

    def overwritten(self) -> set[int]:
        """Hooks of whose kept tensors one has changed since."""
        return {hook for (hook, _), (alias, version) in self.kept.items() if alias._version != version}


def _by_running(
    model: nn.Module,
    inner: nn.Module,
    hooks: list[Hook],
    scopes: dict[int, Scope],
    inputs: tuple,
    kwargs: dict,
) -> Iterator[Finding]:
    watch = _Watch(hooks, scopes)
    compiled, fired_compiled = is_compiled(model), set()
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored(inner))
        for scope in scopes.values():
            stack.enter_context(scope.restored())
        stack.enter_context(watch.in_place_of_hooks())
        if compiled:
            model(*inputs, **kwargs)
            fired_compiled, watch.fired = watch.fired, set()
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        output = model(*inputs, **kwargs)
        heads = [t for t in tensors_in(output) if t.requires_grad]
        backward = bool(heads) and any(hook.kind in _BACKWARD for hook in hooks)
        if backward:
            torch.autograd.backward([head.sum() for head in heads])
        overwritten = watch.overwritten()
    named = modules_by_name(inner)
    for hook in watch.hooks:
        if hook.id in overwritten:
            yield _finding("overwritten", hook)
        if hook.id in watch.returned:
            yield _finding("returns_value", hook, type=watch.returned[hook.id])
        if hook.id not in watch.fired and (backward or hook.kind not in _BACKWARD):
            reason = GRADIENT_NEVER_CAME
            if hook.path in named and hook.kind not in _BACKWARD:
                reason = why_never_called(inner, named[hook.path], hook.path or "(model)")
            yield _finding("never_fired", hook, reason=reason)
        if (
            compiled
            and hook.id in watch.fired
            and hook.id not in fired_compiled
            and hook.kind not in _BACKWARD
        ):
            yield _finding("after_compile", hook)


def _form(value: Any) -> Any:
    return type(value), map_tensors(lambda tensor: (tuple(tensor.shape), tensor.dtype), value)


def _has_tensors(value: Any) -> bool:
    return next(tensors_in(value), None) is not None


def _is_lambda(hook: Hook) -> bool:
    return getattr(hook.callable, "__name__", "") == "<lambda>"


# In the order of gravity: wrong numbers first, then what is missing, then what is only a nuisance.
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
