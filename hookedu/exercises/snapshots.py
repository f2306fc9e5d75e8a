"""Snapshots of what an answer is given and of the process, taken before a call and compared after it.

Only what may not change is copied. Afterwards the very objects are looked at again, without a second copy: an answer is
called some twenty times in one check. A difference is told as (kind, where), with `where` as code.
"""

import functools
import sys
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from hookedu.hooks.state import GLOBAL_HOOKS, GLOBAL_STEP_HOOKS

# Kinds of what is compared, each also the id of a breach.
HOOKS = "hooks"  # hooks left on: when the call returns, or, with HANDLES, at the end of the observation
OTHERS = "others"  # a hook of somebody else removed
GRAD = "grad"  # the `.grad` of a tensor or parameter
REQUIRES_GRAD = "requires_grad"
MODE = "mode"  # the `training` of a module
VALUES = "values"  # the values of parameters
BUFFERS = "buffers"  # those of buffers
ATTRIBUTES = "attributes"  # attributes of modules: added, removed, or changed in a module of torch
ARGUMENT = "argument"  # the values and items of what the answer is given
RNG = "rng"
PROCESS = "process"  # grad mode, default dtype, compiler stance ...

_MAX_ELEMENTS = 4096  # larger tensors and containers are not compared
_HOOK_TABLES = [name for name, value in vars(nn.Module()).items() if name.endswith("hooks") and value == {}]
_OWN = frozenset(vars(nn.Module()))  # attributes of every module, compared by other rules

Place = tuple[str, str]  # (kind, where)


class Before:
    """An object before a call, with a copy of what is compared; kinds that may change are neither copied nor asked for."""

    __slots__ = ()

    def compare(self, may: Collection[str], changed: list[Place], added: list[Place]) -> None:
        """Add the kinds and places that differ now, without those of the kinds in `may`."""
        raise NotImplementedError


def snapshot(name: str, value: Any, may: Collection[str]) -> list[Before]:
    """Return an argument and all that it holds, without a copy of the kinds in `may`; to be called without grad mode.

    A call may replace what an argument holds; compared are these objects all the same.
    """
    found: list[Before] = []
    _add(found, name, value, ARGUMENT, set(), may)
    return found


def differences(before: list[Before], may: Collection[str]) -> list[Place]:
    """Return the kinds and places that differ now, without those of the kinds in `may`; what was added comes last."""
    changed: list[Place] = []
    added: list[Place] = []
    for one in before:
        one.compare(may, changed, added)
    return changed + added


def _add(
    found: list[Before], where: str, value: Any, kind: str, seen: set[int], may: Collection[str]
) -> None:
    if id(value) in seen or (isinstance(value, list | tuple | dict) and len(value) > _MAX_ELEMENTS):
        return
    seen.add(id(value))
    if type(value) is torch.Tensor or type(value) is nn.Parameter:
        if value.layout == torch.strided:
            found.append(_Tensor(where, value, VALUES if type(value) is nn.Parameter else kind, may))
    elif isinstance(value, nn.Module):
        for path, module in value.named_modules():
            name = f"{where}.{path}" if path else where
            found.append(_Module(name, module, may))
            for key, tensor in module._parameters.items():
                _add(found, f"{name}.{key}", tensor, VALUES, seen, may)
            for key, tensor in module._buffers.items():
                _add(found, f"{name}.{key}", tensor, BUFFERS, seen, may)
    elif isinstance(value, torch.optim.Optimizer):
        found.append(_Optimizer(where, value))
        _add(found, f"{where}.param_groups", value.param_groups, kind, seen, may)
    elif type(value) in (list, tuple):
        found.append(_Container(where, value, kind, may))
        for n, item in enumerate(value):
            _add(found, f"{where}[{n}]", item, kind, seen, may)
    elif isinstance(value, dict):
        found.append(_Container(where, value, kind, may))
        for key, item in value.items():
            _add(found, f"{where}[{key!r:.40}]", item, kind, seen, may)


class _Tensor(Before):
    __slots__ = (
        *("_where", "_tensor", "_kind", "_requires_grad", "_values", "_hooks"),
        *("_grad", "_attributes", "_retains"),
    )

    def __init__(self, where: str, tensor: torch.Tensor, kind: str, may: Collection[str]) -> None:
        self._where, self._tensor, self._kind = where, tensor, kind
        self._requires_grad = tensor.requires_grad
        small = kind not in may and tensor.numel() <= _MAX_ELEMENTS
        self._values = tensor.clone() if small else None
        self._hooks = _hooks_of(tensor)
        grad = None if GRAD in may else _grad_of(tensor)
        self._grad = None if grad is None else grad.clone()
        self._attributes = dict(vars(tensor))
        self._retains = None if tensor.is_leaf else tensor.retains_grad

    def compare(self, may: Collection[str], changed: list[Place], added: list[Place]) -> None:
        where, tensor = self._where, self._tensor
        if REQUIRES_GRAD not in may and tensor.requires_grad != self._requires_grad:
            changed.append((REQUIRES_GRAD, f"{where}.requires_grad"))
        if self._kind not in may:
            small = tensor.numel() <= _MAX_ELEMENTS
            if self._values is None:
                added.extend([(self._kind, where)] if small else [])
            elif not small or not _equal(self._values, tensor):
                changed.append((self._kind, where))
        _compare_hooks(where, self._hooks, _hooks_of(tensor), may, changed)
        if GRAD not in may and not _equal(self._grad, _grad_of(tensor)):
            changed.append((GRAD, f"{where}.grad"))
        if ATTRIBUTES in may:
            return
        now = vars(tensor)
        for key, value in self._attributes.items():
            if key not in now or not _alike(value, now[key]):
                changed.append((ATTRIBUTES, f"{where}.{key}"))
        added.extend((ATTRIBUTES, f"{where}.{key}") for key in now if key not in self._attributes)
        retains = None if tensor.is_leaf else tensor.retains_grad
        if retains is not self._retains:
            (added if self._retains is None else changed).append((ATTRIBUTES, f"{where}.retains_grad"))


def _grad_of(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None  # torch warns about any other


def _hooks_of(tensor: torch.Tensor) -> set[Any]:
    return {*(tensor._backward_hooks or ()), *(getattr(tensor, "_post_accumulate_grad_hooks", None) or ())}


class _Module(Before):
    __slots__ = ("_attributes", "_hooks", "_mode", "_module", "_tables", "_where")

    def __init__(self, where: str, module: nn.Module, may: Collection[str]) -> None:
        self._where, self._module, self._mode = where, module, module.training
        self._hooks = self._hooks_now()
        self._attributes = {} if ATTRIBUTES in may else self._attributes_now()
        self._tables = {} if ATTRIBUTES in may else self._tables_now()

    def compare(self, may: Collection[str], changed: list[Place], added: list[Place]) -> None:
        where = self._where
        if MODE not in may and not _equal(self._mode, self._module.training):
            changed.append((MODE, f"{where}.training"))
        _compare_hooks(where, self._hooks, self._hooks_now(), may, changed)
        if ATTRIBUTES in may:
            return
        now = self._attributes_now()
        for key, value in self._attributes.items():
            if not _alike(value, now.get(key, _UNCOMPARED)):
                changed.append((ATTRIBUTES, f"{where}.{key}"))
        added.extend((ATTRIBUTES, f"{where}.{key}") for key in now if key not in self._attributes)
        tables = self._tables_now()
        if tables != self._tables:
            differ = [name for name, items in self._tables.items() if items != tables[name]]
            changed.extend((ATTRIBUTES, f"{where}.{name}") for name in differ)

    def _hooks_now(self) -> set[Any]:
        return {(table, n) for table in _HOOK_TABLES for n in getattr(self._module, table)}

    def _attributes_now(self) -> dict[str, Any]:
        """Return the attributes; those that a module of a case may change, such as a count of its calls, uncompared."""
        library = type(self._module).__module__.startswith("torch")
        own = vars(self._module).items()
        return {k: v if library or callable(v) else _UNCOMPARED for k, v in own if k not in _OWN}

    def _tables_now(self) -> dict[str, list[tuple[str, int]]]:
        names = ("_modules", "_parameters", "_buffers")
        return {name: [(k, id(v)) for k, v in vars(self._module)[name].items()] for name in names}


_UNCOMPARED = object()


class _Optimizer(Before):
    __slots__ = ("_hooks", "_optimizer", "_where")

    def __init__(self, where: str, optimizer: torch.optim.Optimizer) -> None:
        self._where, self._optimizer = where, optimizer
        self._hooks = self._hooks_now()

    def compare(self, may: Collection[str], changed: list[Place], added: list[Place]) -> None:
        _compare_hooks(self._where, self._hooks, self._hooks_now(), may, changed)

    def _hooks_now(self) -> set[Any]:
        tables = {name: table for name, table in vars(self._optimizer).items() if name.endswith("_hooks")}
        return {(name, n) for name, table in tables.items() for n in table}


class _Container(Before):
    __slots__ = ("_items", "_kind", "_value", "_where")

    def __init__(self, where: str, value: list | tuple | dict, kind: str, may: Collection[str]) -> None:
        self._where, self._value, self._kind = where, value, kind
        self._items = [] if kind in may else self._items_now()

    def compare(self, may: Collection[str], changed: list[Place], added: list[Place]) -> None:
        if self._kind not in may:
            now = self._items_now()
            if len(now) != len(self._items) or not all(map(_alike, self._items, now)):
                changed.append((self._kind, self._where))

    def _items_now(self) -> list[Any]:
        value = self._value
        return [part for item in value.items() for part in item] if isinstance(value, dict) else list(value)


def _compare_hooks(
    where: str, before: set[Any], now: set[Any], may: Collection[str], changed: list[Place]
) -> None:
    if HOOKS not in may and now - before:
        changed.append((HOOKS, where))
    if OTHERS not in may and before - now:
        changed.append((OTHERS, where))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return torch.equal(one, other) or bool(((one == other) | ((one != one) & (other != other))).all())
    return one is other or (type(one) is type(other) and one == other)


def _alike(one: Any, two: Any) -> bool:
    """Check whether two values are the same one, or equal plain values."""
    plain = type(one) in (bool, int, float, str, type(None)) and type(one) is type(two)
    return one is two or (plain and (one == two or one != one))


_GLOBAL_TABLES = {
    **{f"torch.nn.modules.module.{name}": table for name, table in GLOBAL_HOOKS.items()},
    **{f"torch.optim.optimizer.{name}": table for name, table in GLOBAL_STEP_HOOKS.items()},
}

# Settings of the process that an answer might change.
_SETTINGS: dict[str, Callable[[], Any]] = {
    "torch.is_grad_enabled()": torch.is_grad_enabled,
    "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled,
    "torch.get_default_dtype()": torch.get_default_dtype,
    "torch.is_anomaly_enabled()": torch.is_anomaly_enabled,
    "torch.is_autocast_enabled('cpu')": functools.partial(torch.is_autocast_enabled, "cpu"),
    "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled,
    "torch.get_num_threads()": torch.get_num_threads,
}


def _settings_now() -> list[Any]:
    return [read() for read in _SETTINGS.values()]


class ProcessBefore:
    """The state of the process before a call, but for Python's RNG."""

    def __init__(self, may: Collection[str]) -> None:
        self._settings = _settings_now()
        self._rng = None if RNG in may else torch.get_rng_state()
        self._hooks = [set(table) for table in _GLOBAL_TABLES.values()]
        # The compiler appears when that part of torch is loaded, which is no change.
        self._compiler = sys.modules.get("torch._dynamo.eval_frame")
        self._stance = self._stance_now()

    def differences(self, may: Collection[str]) -> list[Place]:
        """Return the kinds and places that differ now, without those of the kinds in `may`."""
        found: list[Place] = []
        if PROCESS not in may and (now := _settings_now()) != self._settings:
            pairs = zip(_SETTINGS, self._settings, now, strict=True)
            found += [(PROCESS, name) for name, before, after in pairs if before != after]
        if self._rng is not None and RNG not in may and not torch.equal(self._rng, torch.get_rng_state()):
            found.append((RNG, "torch.get_rng_state()"))
        for (where, table), before in zip(_GLOBAL_TABLES.items(), self._hooks, strict=True):
            if table or before:
                _compare_hooks(where, before, set(table), may, found)
        if PROCESS not in may and self._stance != self._stance_now():
            found.append((PROCESS, "torch.compiler.set_stance"))
        return found

    def _stance_now(self) -> str:
        return str(getattr(self._compiler, "_stance", None))
