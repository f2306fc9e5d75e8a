"""The variables that a function can reach: its closure, defaults, bound object and the globals that it refers to."""

import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from hookedu.hooks.tensors import parts

_MAX_DEPTH = 4


class Scope:
    """The variables that a callable can reach, by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._cells: list[tuple[str, Any]] = []  # (name, closure cell)
        # (prefix, namespace, the names in it that the function can use)
        self._tables: list[tuple[str, dict[str, Any], list[str]]] = []
        self._enter(function)

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> "Scope":
        """Return a scope of the given variables."""
        scope = cls.__new__(cls)
        scope._cells, scope._tables = [], [("", values, list(values))]
        return scope

    def _enter(self, function: Any) -> None:
        """Add the variables of a callable."""
        if isinstance(function, functools.partial):
            arguments = {f"argument {i}": value for i, value in enumerate(function.args)} | function.keywords
            self._tables.append(("", arguments, list(arguments)))
            self._enter(function.func)
        elif inspect.ismethod(function):
            self._enter_object(function.__self__)
            self._enter(function.__func__)
        elif inspect.isfunction(function):
            code = function.__code__
            self._cells += zip(code.co_freevars, function.__closure__ or (), strict=True)
            names = [name for name in code.co_names if name in function.__globals__]
            self._tables.append(("", function.__globals__, names))
            defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
            self._tables.append(("", defaults, list(defaults)))
        elif inspect.isbuiltin(function):  # such as store.append
            self._tables.append(("", {"list": function.__self__}, ["list"]))
        else:
            self._enter_object(function)

    def _enter_object(self, instance: Any) -> None:
        """Add the attributes of an object, but not those of a module or class."""
        if not isinstance(instance, nn.Module | type) and hasattr(instance, "__dict__"):
            self._tables.append(("self.", vars(instance), list(vars(instance))))

    def variables(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, value) of every variable that is within reach now."""
        for name, cell in self._cells:
            with contextlib.suppress(ValueError):  # an empty cell
                yield name, cell.cell_contents
        for prefix, table, names in self._tables:
            yield from ((prefix + name, table[name]) for name in names if name in table)
        for prefix, table, names in self._tables:
            if prefix:  # the object may have gained attributes since
                yield from ((prefix + name, table[name]) for name in [*table] if name not in names)

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield (variable's name, tensor) of every tensor that a variable or a container in it holds.

        Parameters are left out: they belong to the model.
        """
        for name, value in self.variables():
            for found in _inside(value, _MAX_DEPTH):
                if isinstance(found, torch.Tensor) and not isinstance(found, nn.Parameter):
                    yield name, found

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context manager that restores the variables and the contents of containers at its end."""
        cells, copies = [], []
        for _, cell in self._cells:
            with contextlib.suppress(ValueError):
                cells.append((cell, cell.cell_contents))
        tables = [
            (table, {name: table[name] for name in names if name in table}, prefix)
            for prefix, table, names in self._tables
        ]
        for _, value in self.variables():
            copies += [
                (box, box.copy())
                for box in _inside(value, _MAX_DEPTH)
                if isinstance(box, list | dict | set | deque)
            ]
        try:
            yield
        finally:
            for cell, value in cells:
                cell.cell_contents = value
            for table, values, prefix in tables:
                if prefix:
                    table.clear()
                table.update(values)
            for box, before in copies:
                box.clear()
                box.extend(before) if isinstance(box, list | deque) else box.update(before)


def _inside(value: Any, depth: int) -> Iterator[Any]:
    """Yield the value and, down to `depth`, the items inside it if it is a container."""
    yield value
    if depth == 0 or isinstance(value, torch.Tensor | nn.Module | str | bytes):
        return
    if isinstance(value, Mapping):  # also those that nobody copies, such as a mapping proxy
        held = list(value.values())
    elif isinstance(value, set | frozenset | deque):
        held = list(value)
    else:
        held = [item for _, item in parts(value)]
    for item in held:
        yield from _inside(item, depth - 1)
