"""List and remove the registered hooks of a model, its parameters and the process."""

import functools
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from torch import nn

from hookedu.hooks.modules import NOT_A_MODEL, modules_by_name
from hookedu.hooks.state import GLOBAL_HOOKS
from hookedu.language import Text
from hookedu.tables import Table

# The tables in which a module keeps its hooks, with the kind of each. PyTorch keeps further tables with the
# same ids (`..._with_kwargs`, `..._always_called`), which hold options of these hooks.
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
_KINDS = [*_ON_MODULES.values(), "legacy_backward", *_ON_PARAMETERS.values(), *_ON_THE_PROCESS.values()]


@dataclass(frozen=True)
class Hook:
    """A registered hook.

    Attributes
    ----------
    kind : str
        "forward_pre", "forward", "backward_pre", "backward" (full), "legacy_backward", "state_dict_pre",
        "state_dict", "load_state_dict_pre", "load_state_dict_post", "param_grad", "post_accumulate", or a
        global kind such as "global forward".
    path : str or None
        Dotted name of the module or parameter, "" for the model itself, None for a global hook.
    index : int
        Zero-based position among the hooks of its kind in that place, which is the order in which they run.
    function : str
        Qualified name of the function.
    file : str or None
        File of the function, None where Python does not know it.
    line : int or None
        First line of the function in that file.
    owner : str
        Whose function it is: "user", "torch", "hookedu" or the name of another installed package.
    id : int
        Key of the hook in PyTorch's tables.
    callable : callable
        What was registered.
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
        """Remove the hook; do nothing if it has been removed already."""
        for table in self._tables:
            table.pop(self.id, None)
        tap: Any = getattr(self.callable, "__self__", None)
        if self.owner == "hookedu" and hasattr(tap, "when_removed"):  # a hook of `record`
            tap.when_removed()

    @property
    def registered(self) -> bool:
        """Whether the hook has not been removed."""
        return self.id in self._tables[0]


class Removal:
    """Takes a hook off, and can put it back where it was.

    Parameters
    ----------
    hook : Hook
        A registered hook, which is removed.

    Examples
    --------
    >>> from torch import nn
    >>> from hookedu.hooks.inspection import Removal, list_hooks
    >>> model = nn.ReLU()
    >>> handles = [model.register_forward_hook(print), model.register_forward_hook(repr)]
    >>> removal = Removal(list_hooks(model)[0])
    >>> [hook.function for hook in list_hooks(model)]
    ['repr']
    >>> removal.undo(model)
    True
    >>> [hook.function for hook in list_hooks(model)]
    ['print', 'repr']
    """

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self._before = [list(table.items()) for table in hook._tables]
        hook.remove()
        self._after = list(hook._tables[0].items())

    def undo(self, model: nn.Module | None = None) -> bool:
        """Put the hook back, unless other hooks have come or gone in its place or the place has left the model.

        Parameters
        ----------
        model : torch.nn.Module, optional
            The model that the hook was registered on; none for a global hook.

        Returns
        -------
        bool
            Whether the hook was put back.
        """
        table = self.hook._tables[0]
        here = any(each is table for each, *_ in _tables_of(model))
        if not here or not _same(list(table.items()), self._after):
            return False
        for each, before in zip(self.hook._tables, self._before, strict=True):
            if self.hook.id not in dict(before):
                continue
            at = [key for key, _ in before].index(self.hook.id)
            each[self.hook.id] = before[at][1]
            for key, _ in before[at + 1 :]:  # in place, as handles and autograd refer to this very table
                if key in each:
                    each[key] = each.pop(key)
        return True


def _same(one: list[tuple[int, Any]], other: list[tuple[int, Any]]) -> bool:
    """Check whether two tables hold the same hooks in the same order; hooks may compare as they like."""
    return [(key, id(hook)) for key, hook in one] == [(key, id(hook)) for key, hook in other]


class Hooks(list[Hook]):
    """A list of hooks that prints as a table."""

    def table(self) -> Table:
        """Return one row per hook: where, kind, order, function, source and owner."""
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
    """List the hooks registered on a model, on its parameters and globally.

    Parameters
    ----------
    model : torch.nn.Module, optional
        The model to look at. By default only the global hooks of the process are listed.

    Returns
    -------
    Hooks
        A list of ``Hook`` that prints as a table: first the global hooks, then module by module, a module's
        parameters after the module. A module or parameter that has several names is listed under the first
        one. Each entry has ``kind``, ``path``, ``index``, ``function``, ``file``, ``line`` and ``owner``, and
        a method ``remove()``.

    Raises
    ------
    TypeError
        If ``model`` is not a ``torch.nn.Module``.

    Notes
    -----
    Hooks on tensors that are not parameters and hooks on nodes of the autograd graph cannot be found from a
    model. Hooks registered on the wrapper that ``torch.compile`` returns, instead of on the model inside, are
    not listed.

    Examples
    --------
    >>> from torch import nn
    >>> from hookedu import list_hooks
    >>> def report(module, args, output):
    ...     print(tuple(output.shape))
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> handle = model[1].register_forward_hook(report)
    >>> [(hook.path, hook.kind, hook.function, hook.owner) for hook in list_hooks(model)]
    [('1', 'forward', 'report', 'user')]
    >>> handle.remove()
    >>> list_hooks(model)
    no hooks
    """
    if model is not None and not isinstance(model, nn.Module):
        raise TypeError(str(NOT_A_MODEL.format(got=type(model).__name__)))
    return Hooks(hook for table in _tables_of(model) for hook in _hooks_in(*table))


# A table of hooks, their kind, where they are registered, and the further tables with the same ids.
_Place = tuple[dict, str, str | None, list[dict | None]]


def _tables_of(model: nn.Module | None) -> Iterator[_Place]:
    """Yield the tables of the process, of every module and of every parameter, as far as there are any."""
    for name, kind in _ON_THE_PROCESS.items():
        also = [GLOBAL_HOOKS.get(f"{name}_{suffix}") for suffix in ("always_called", "with_kwargs")]
        yield GLOBAL_HOOKS[name], kind, None, also
    seen: set[int] = set()
    for path, module in ({} if model is None else modules_by_name(model)).items():
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, kind in _ON_MODULES.items():
            if name == "_backward_hooks" and module._is_full_backward_hook is False:
                kind = "legacy_backward"
            also = [module.__dict__.get(f"{name}_{suffix}") for suffix in ("always_called", "with_kwargs")]
            if (table := module.__dict__.get(name)) is not None:
                yield table, kind, path, also
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            for name_of_table, kind in _ON_PARAMETERS.items():
                if (table := getattr(parameter, name_of_table, None)) is not None:
                    yield table, kind, f"{path}.{name}" if path else name, []


def remove_hooks(
    model: nn.Module | None = None, owner: str = "hookedu", kind: str | None = None, path: str | None = None
) -> Hooks:
    """Remove the hooks of one owner from a model, its parameters and the process.

    Parameters
    ----------
    model : torch.nn.Module, optional
        The model to remove hooks from. By default only global hooks are removed.
    owner : str, default "hookedu"
        Whose hooks to remove: ``"hookedu"``, ``"user"`` or the name of another installed package, as in the
        owner column of ``list_hooks``.
    kind : str, optional
        Remove only hooks of this kind, for example ``"forward"`` or ``"param_grad"``.
    path : str, optional
        Remove only hooks of the module or parameter with this dotted name; ``""`` is the model itself.

    Returns
    -------
    Hooks
        The removed hooks, a list that prints as a table.

    Raises
    ------
    ValueError
        If ``owner`` is ``"torch"``: those hooks are part of how the model works; or if there is no such ``kind``.
    TypeError
        If ``model`` is not a ``torch.nn.Module``.

    Examples
    --------
    Remove the hooks that earlier runs of a notebook cell left behind:

    >>> from torch import nn
    >>> from hookedu import list_hooks, remove_hooks
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> for _ in range(2):
    ...     handle = model[1].register_forward_hook(lambda module, args, output: None)
    >>> len(remove_hooks(model, owner="user", kind="forward"))
    2
    >>> list_hooks(model)
    no hooks
    """
    if owner == "torch":
        raise ValueError(str(NOT_TORCH))
    if kind not in (None, *_KINDS):
        raise ValueError(str(NO_KIND.format(got=kind, kinds=", ".join(_KINDS))))
    found = Hooks(
        hook
        for hook in list_hooks(model)
        if hook.owner == owner and kind in (None, hook.kind) and path in (None, hook.path)
    )
    for hook in found:
        hook.remove()
    return found


def _hooks_in(table: dict, kind: str, path: str | None, also: list[dict | None]) -> Iterator[Hook]:
    """Yield the hooks of one table; `also` holds the further tables with the same ids."""
    tables = (table, *(other for other in also if other is not None))
    for index, (identity, hook) in enumerate(table.items()):
        function = plain_function(hook)
        file, line = _source(function)
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        # In torch 2.15 handle.remove() leaves the hook's entry in the with_kwargs table of global forward
        # hooks, so Hook.remove() clears every table of the id.
        yield Hook(kind, path, index, name, file, line, owner_of(function), identity, hook, tables)


def plain_function(hook: Any) -> Any:
    """Return the function inside partials, bound methods and wrappers of decorators and of torch.

    A callable that is none of these is returned as it is. An object that has an answer to every attribute wraps nothing.
    """
    passed = []  # against a hook that wraps itself
    while not any(hook is one for one in passed):
        passed.append(hook)
        if isinstance(hook, functools.partial):
            hook = hook.func
        elif inspect.ismethod(hook):
            hook = hook.__func__
        elif type(hook).__module__.startswith("torch.") and isinstance(getattr(hook, "hook", None), Callable):
            hook = hook.hook  # torch.nn.modules.module._WrappedHook
        elif isinstance(wrapped := inspect.getattr_static(hook, "__wrapped__", None), Callable):
            hook = wrapped
    return hook


def _source(function: Any) -> tuple[str | None, int | None]:
    codes = (getattr(function, "__code__", None), getattr(type(function).__call__, "__code__", None))
    code = next((code for code in codes if isinstance(code, CodeType)), None)
    return (code.co_filename, code.co_firstlineno) if code else (None, None)


def owner_of(thing: Any) -> str:
    """Return whose a function, class, module or callable object is: "user", "torch", or another package's name."""
    if inspect.isbuiltin(thing):  # such as the method append of somebody's list
        return "user"
    name = "__name__" if inspect.ismodule(thing) else "__module__"
    module = getattr(thing, name, None)
    if not (module and isinstance(module, str)):  # an object may have any answer to any attribute
        module = type(thing).__module__
    package = module.partition(".")[0]
    by_exec = inspect.isfunction(thing) and thing.__module__ is None
    if package == "__main__" or by_exec:
        return "user"
    if package in ("torch", "hookedu"):
        return package
    file = _source(thing)[0]
    if file is None or file.startswith("<"):  # not Python, or made by a decorator such as dataclass
        file = getattr(sys.modules.get(module), "__file__", None)
    known = package in sys.stdlib_module_names if file is None else _is_library(os.path.dirname(file))
    return package if known else "user"


@functools.cache
def _is_library(folder: str) -> bool:
    """Check whether files of a folder are Python's own or have been installed, into whatever place."""
    path = Path(folder)
    if {"site-packages", "dist-packages"} & {*path.parts} or path.is_relative_to(
        sysconfig.get_path("stdlib")
    ):
        return True
    # What `pip install --target` has put on PYTHONPATH lies beside its metadata. A project that its author has installed
    # with --editable does not: its metadata are in site-packages.
    roots = [root for root in sys.path if root and path.is_relative_to(root)]
    return bool(roots) and any(Path(max(roots, key=len)).glob("*.dist-info"))


NO_KIND = Text(
    zh="没有 {got!r} 这种钩子；有：{kinds}", en="no hooks are of kind {got!r}; the kinds are {kinds}"
)
NOT_TORCH = Text(
    zh="PyTorch 自己的钩子是模型工作方式的一部分，不能这样取下",
    en="PyTorch's own hooks are part of how the model works: they are not taken off here",
)
