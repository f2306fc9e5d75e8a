"""Which hooks live: of a model, of its parameters, and of the whole process; and taking them off."""

import functools
import inspect
import os
import site
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from hookedu.hooks.modules import NOT_A_MODEL, modules_by_name
from hookedu.hooks.state import GLOBAL_HOOKS
from hookedu.language import Text
from hookedu.tables import Table

# Where a module keeps its hooks, and what users call them. Other tables of the same ids belong to these.
_ON_MODULES = {
    "_forward_pre_hooks": "forward_pre",
    "_forward_hooks": "forward",
    "_backward_pre_hooks": "backward_pre",
    "_backward_hooks": "backward",
    "_state_dict_pre_hooks": "state_dict_pre",
    "_state_dict_hooks": "state_dict",
    "_load_state_dict_pre_hooks": "load_state_dict_pre",
    "_load_state_dict_post_hooks": "load_state_dict_post",
}
_ON_PARAMETERS = {"_backward_hooks": "param_grad", "_post_accumulate_grad_hooks": "post_accumulate"}
_ON_THE_PROCESS = {
    name: "global " + name.removeprefix("_global_").removesuffix("_hooks")
    for name in GLOBAL_HOOKS
    if name.endswith("_hooks")
}


@dataclass(frozen=True)
class Hook:
    """A live hook.

    kind: "forward_pre", "forward", "backward_pre", "backward" (full), "legacy_backward", "state_dict_pre",
    "state_dict", "load_state_dict_pre", "load_state_dict_post", "param_grad", "post_accumulate", or a global one:
    "global forward" and so on. path: the module's or parameter's dotted name, "" for the model itself and None
    for a global hook. index: the order among hooks of its kind there, from 0. function: its qualified name, with
    file and line where Python knows them. owner: "user", "torch", "hookedu" or the name of a package.
    """

    kind: str
    path: str | None
    index: int
    function: str
    file: str | None
    line: int | None
    owner: str
    id: int
    callable: Callable[..., Any] = field(repr=False, compare=False)
    _tables: tuple[dict, ...] = field(repr=False, compare=False)

    def remove(self) -> None:
        """Take the hook off; harmless where it is off already."""
        for table in self._tables:
            table.pop(self.id, None)


class Hooks(list[Hook]):
    """A list of hooks that prints as a table."""

    def table(self) -> Table:
        rows = [
            [
                "(process)" if h.path is None else h.path or "(model)",
                h.kind,
                h.index,
                h.function,
                "" if h.file is None else f"{os.path.basename(h.file)}:{h.line}",
                h.owner,
            ]
            for h in self
        ]
        return Table(["where", "kind", "order", "function", "source", "owner"], rows)

    def __repr__(self) -> str:
        return str(self.table()) if self else "no hooks"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() if self else "no hooks"


def list_hooks(model: nn.Module | None = None) -> Hooks:
    """Every live hook of a model, of its parameters and of the process; without a model the process's only.

    In the order: global hooks, then module by module, parameters after their module. Hooks on tensors that are no
    parameters, and on nodes of the graph, cannot be found from a model. Raises TypeError for what is no nn.Module.
    """
    hooks = Hooks()
    for name, kind in _ON_THE_PROCESS.items():
        table = GLOBAL_HOOKS[name]
        also = [GLOBAL_HOOKS.get(f"{name}_{suffix}") for suffix in ("always_called", "with_kwargs")]
        hooks += _hooks_in(table, kind, None, [t for t in also if t is not None])
    if model is None:
        return hooks
    if not isinstance(model, nn.Module):
        raise TypeError(str(NOT_A_MODEL.format(got=type(model).__name__)))
    seen: set[int] = set()
    for path, module in modules_by_name(model).items():
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, kind in _ON_MODULES.items():
            if name == "_backward_hooks" and module._is_full_backward_hook is False:
                kind = "legacy_backward"
            also = [module.__dict__.get(f"{name}_{suffix}") for suffix in ("always_called", "with_kwargs")]
            hooks += _hooks_in(module.__dict__.get(name), kind, path, [t for t in also if t is not None])
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            for table, kind in _ON_PARAMETERS.items():
                where = f"{path}.{name}" if path else name
                hooks += _hooks_in(getattr(parameter, table, None), kind, where, [])
    return hooks


def remove_hooks(
    model: nn.Module | None = None, owner: str = "hookedu", kind: str | None = None, path: str | None = None
) -> Hooks:
    """Take off the hooks of one owner (see `Hook`), of one kind and path if given; returns those taken off.

    The owner "torch" is refused with ValueError: those hooks are part of how the model works.
    """
    if owner == "torch":
        raise ValueError(str(NOT_TORCH))
    found = Hooks(
        hook
        for hook in list_hooks(model)
        if hook.owner == owner and kind in (None, hook.kind) and path in (None, hook.path)
    )
    for hook in found:
        hook.remove()
    return found


def _hooks_in(table: dict | None, kind: str, path: str | None, also: list[dict]) -> Iterator[Hook]:
    for index, (identity, hook) in enumerate((table or {}).items()):
        function = plain_function(hook)
        file, line = _source(function)
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        # The with_kwargs table of global forward hooks keeps its entry when a handle is removed (torch 2.15), so
        # taking a hook off here clears every table of the id.
        yield Hook(
            kind, path, index, name, file, line, _owner(function, file), identity, hook, (table, *also)
        )


def plain_function(hook: Any) -> Any:
    """The function inside partials, bound methods, decorators' and torch's wrappers; else the callable itself."""
    while True:
        if isinstance(hook, functools.partial):
            hook = hook.func
        elif inspect.ismethod(hook):
            hook = hook.__func__
        elif isinstance(getattr(hook, "hook", None), Callable) and type(hook).__module__.startswith("torch."):
            hook = hook.hook  # torch.nn.modules.module._WrappedHook
        elif hasattr(hook, "__wrapped__"):
            hook = hook.__wrapped__
        else:
            return hook


def _source(function: Any) -> tuple[str | None, int | None]:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (None, None)


@functools.cache
def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    return tuple(os.path.join(path, "") for path in {*paths, *site.getsitepackages()})


def _owner(function: Any, file: str | None) -> str:
    """Who put a hook on, as far as its function's home tells."""
    module = getattr(function, "__module__", None) or type(function).__module__
    package = module.partition(".")[0]
    if package == "__main__":
        return "user"
    if package in ("torch", "hookedu"):
        return package
    return package if file is not None and file.startswith(_libraries()) else "user"


NOT_TORCH = Text(
    zh="PyTorch 自己的钩子是模型工作方式的一部分，不能这样取下",
    en="PyTorch's own hooks are part of how the model works: they are not taken off here",
)
