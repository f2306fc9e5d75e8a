"""Conduct: what an answer does beside what it returns, watched in the same way for every exercise.

An answer may not change its arguments, the state of a model or of the process, keep anything from one call to the next,
or swallow an exception, unless its `Probe` declares it. Whatever it does anyway is a breach, reported among the
observations as [kind, where], with `where` as code. The words are under `conduct` in course/shared_words.yml.
"""

import contextlib
import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from hookedu.hooks.state import GLOBAL_HOOKS

# Kinds of state that `Probe.leaves` may name, each also the id of the breach.
HOOKS = "hooks"  # hooks left on: when the call returns, or, with HANDLES, at the end of the observation
HANDLES = "handles"  # only in `leaves`: hooks may stay until the probe has removed them by their handles
GRAD = "grad"  # the `.grad` of a tensor or parameter
REQUIRES_GRAD = "requires_grad"
MODE = "mode"  # the `training` of a module
VALUES = "values"  # the values of parameters and buffers
ATTRIBUTES = "attributes"  # attributes of modules: added, removed, or changed in a module of torch
RNG = "rng"
OTHERS = "others"  # a hook of somebody else removed
# Breaches that no exercise allows.
ARGUMENT = "argument"  # but for the arguments in `Probe.changes`
PROCESS = "process"  # grad mode, default dtype, compiler stance ...
RUNS = "runs"  # the model ran more often than `Probe.runs`
STATE = "state"  # a second call with equal input gives another result
SWALLOWS = "swallows"  # an exception inside the model did not come through
UNRESTORED = "unrestored"  # after such an exception; only with `Probe.restores`

_MAX_ELEMENTS = 4096  # larger tensors and containers are not compared
_HOOK_TABLES = [name for name, value in vars(nn.Module()).items() if name.endswith("hooks") and value == {}]
_OWN = frozenset(vars(nn.Module()))  # attributes of every module, compared by other rules

Places = list[tuple[str, Any, str]]  # (where, object, kind of its values)
State = dict[tuple[str, str], Any]  # (kind, where) -> value


class Interruption(RuntimeError):
    """Raised inside a model or a block, as running out of memory would be: no answer may swallow it."""


class Stopped(KeyboardInterrupt):
    """Raised inside a model as by somebody who interrupts the kernel."""


class Conduct:
    """Watches the calls of one answer during one observation.

    Parameters
    ----------
    answer : callable
        What the learner defined.
    changes : tuple of int or str
        Arguments that it may change, by position or keyword.
    leaves : collection of str
        Kinds of state that it may change.
    runs : int or None
        How often one call may run a model among its arguments; None for any number.
    counts : bool
        Count calls of modules. Dynamo would trace the counting, so not for an answer that runs compiled code.
    interrupt : tuple of (type, int), optional
        Raise an exception of this type at this call of a module, counted from 0 within the calls of the answer.

    Attributes
    ----------
    calls : int
        Calls of modules made inside the calls of the answer.
    interrupted : bool
        Whether the exception was raised.
    swallowed : list of list of str
        The breach, if the answer returned all the same.
    """

    def __init__(
        self,
        answer: Callable[..., Any],
        changes: tuple[int | str, ...] = (),
        leaves: tuple[str, ...] = (),
        runs: int | None = None,
        counts: bool = True,
        interrupt: tuple[type[BaseException], int] | None = None,
    ) -> None:
        self._answer, self._changes, self._leaves = answer, changes, leaves
        self._runs, self._counts, self._interrupt = runs, counts, interrupt
        self._inside = False
        self._first: dict[int, tuple[Places, State]] = {}
        self._breaches: dict[tuple[str, str], None] = {}
        self.calls, self.interrupted = 0, False
        self.swallowed: list[list[str]] = []
        self._after_error: list[tuple[str, str]] = []
        self._process: State = {}  # at the latest call; a probe may change it between two

    @property
    def answer(self) -> Callable[..., Any]:
        """The answer, watched."""

        @functools.wraps(self._answer)
        def watched(*args: Any, **kwargs: Any) -> Any:
            # Compiled code is traced as it is; of calls within calls, the outermost is watched.
            if self._inside or torch.compiler.is_compiling():
                return self._answer(*args, **kwargs)
            return self._call(args, kwargs)

        return watched

    def breaches(self, unrestored: bool = False) -> list[list[str]]:
        """Return all breaches as [kind, where], with what was left behind at the end of the observation.

        With `unrestored`, only what an interrupted call left behind, as breaches of that kind.
        """
        left = dict.fromkeys(self._after_error) if unrestored else {}
        may = {*self._leaves, GRAD, VALUES, ARGUMENT, RNG}  # those change whenever a probe runs the model
        for places, before in self._first.values():
            left |= dict.fromkeys(_differences(before, _state(places), may))
        left |= dict.fromkeys(_differences(self._process, _process(), {*may, PROCESS, OTHERS}))
        if unrestored:
            return [[UNRESTORED, where] for _, where in left]
        return [list(breach) for breach in self._breaches | left]

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        named = _named(self._answer, args, kwargs)
        watched = [
            (key, places, _state(places)) for key, name, value in named for places in [_places(name, value)]
        ]
        for (_, _, value), (_, places, before) in zip(named, watched, strict=True):
            self._first.setdefault(id(value), (places, before))
        process, models = _process(), [value for _, _, value in named if isinstance(value, nn.Module)]
        self._process = process
        self._inside = True
        try:
            with self._counting(models) as runs:
                result = self._answer(*args, **kwargs)
        except BaseException:
            self._after_error = _differences(process, _process(), {*self._leaves, RNG})
            raise
        finally:
            self._inside = False
        if self.interrupted:
            assert self._interrupt
            self.swallowed = [[SWALLOWS, self._interrupt[0].__mro__[1].__name__]]
            return result
        may = set(self._leaves) | ({HOOKS} if HANDLES in self._leaves else set())
        found = _differences(process, _process(), may)
        for key, places, before in watched:
            allowed = may | ({ARGUMENT} if key in self._changes else set())
            found += _differences(before, _state(places), allowed)
        if self._runs is not None and max(runs, default=0) > self._runs:
            found.append((RUNS, f"{max(runs)}"))
        self._breaches |= dict.fromkeys(found)
        return result

    @contextlib.contextmanager
    def _counting(self, models: list[nn.Module]) -> Iterator[list[int]]:
        """Count the calls of each model, and interrupt one of the calls of their parts if asked to."""
        runs = [0] * len(models)

        def counted(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            for n, model in enumerate(models):
                runs[n] += module is model
            self.calls += 1
            if self._interrupt and self.calls - 1 == self._interrupt[1]:
                self.interrupted = True
                raise self._interrupt[0]("out of memory")
            return call(module, *args, **kwargs)

        # Not a global hook: an answer that lists the hooks would find it.
        call = nn.Module.__call__
        nn.Module.__call__ = counted if models and self._counts else call
        try:
            yield runs
        finally:
            nn.Module.__call__ = call


def _named(answer: Any, args: tuple, kwargs: dict[str, Any]) -> list[tuple[int | str, str, Any]]:
    """Return the arguments as (position or keyword, name, value), with the names that the answer gives them."""
    try:
        parameters = list(inspect.signature(answer).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = plain[: len(args)] + [f"args[{n}]" for n in range(len(plain), len(args))]
    return [*zip(range(len(args)), names, args, strict=True), *((k, k, v) for k, v in kwargs.items())]


def _differences(before: State, after: State, may: set[str]) -> list[tuple[str, str]]:
    """Return the kinds and places that differ, without those of the kinds in `may`."""
    found = []
    for (kind, where), value in before.items():
        if kind == HOOKS:
            now = after.get((kind, where), {})
            if kind not in may and now.keys() - value.keys():
                found.append((HOOKS, where))
            if OTHERS not in may and value.keys() - now.keys():
                found.append((OTHERS, where))
        elif kind not in may and not _equal(value, after.get((kind, where))):
            found.append((kind, where))
    # What was added: an attribute, an item, a module. Settings of the process appear when a part of torch is loaded,
    # which is no change.
    return found + [
        place for place in after if place not in before and place[0] not in {*may, HOOKS, PROCESS}
    ]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return torch.equal(one, other) or bool(((one == other) | ((one != one) & (other != other))).all())
    return one is other or (type(one) is type(other) and one == other)


def _places(name: str, value: Any) -> Places:
    """Return an argument and all that it holds. A call may replace them, and is then compared with these objects."""
    places: Places = []
    _add(places, name, value, ARGUMENT, set())
    return places


def _add(places: Places, where: str, value: Any, kind: str, seen: set[int]) -> None:
    if id(value) in seen or (isinstance(value, list | tuple | dict) and len(value) > _MAX_ELEMENTS):
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        for path, module in value.named_modules():
            name = f"{where}.{path}" if path else where
            places.append((name, module, kind))
            for key, tensor in [*module._parameters.items(), *module._buffers.items()]:
                _add(places, f"{name}.{key}", tensor, VALUES, seen)
        return
    inside: list[tuple[str, Any]] = []
    if isinstance(value, torch.optim.Optimizer):
        inside = [(".param_groups", value.param_groups)]
    elif type(value) in (list, tuple):
        inside = [(f"[{n}]", item) for n, item in enumerate(value)]
    elif isinstance(value, dict):
        inside = [(f"[{key!r:.40}]", item) for key, item in value.items()]
    elif not isinstance(value, torch.Tensor) or not _is_plain(value):
        return
    places.append((where, value, VALUES if isinstance(value, nn.Parameter) else kind))
    for key, item in inside:
        _add(places, where + key, item, kind, seen)


def _is_plain(value: torch.Tensor) -> bool:
    return type(value) in (torch.Tensor, nn.Parameter) and value.layout == torch.strided


def _state(places: Places) -> State:
    """Return the state of all these objects."""
    state: State = {}
    with torch.no_grad():
        for where, value, kind in places:
            if isinstance(value, nn.Module):
                _add_module(state, where, value)
            elif isinstance(value, torch.Tensor):
                _add_tensor(state, where, value, kind)
            elif isinstance(value, torch.optim.Optimizer):
                tables = {name: table for name, table in vars(value).items() if name.endswith("_hooks")}
                state[HOOKS, where] = {(name, n): hook for name, t in tables.items() for n, hook in t.items()}
            elif isinstance(value, dict):
                state[kind, where] = [(_Same(key), _Same(item)) for key, item in value.items()]
            else:
                state[kind, where] = [_Same(item) for item in value]
    return state


def _add_tensor(state: State, where: str, value: torch.Tensor, kind: str) -> None:
    state[REQUIRES_GRAD, f"{where}.requires_grad"] = value.requires_grad
    if value.numel() <= _MAX_ELEMENTS:
        state[kind, where] = value.detach().clone()
    accumulated = getattr(value, "_post_accumulate_grad_hooks", None) or {}
    state[HOOKS, where] = {**(value._backward_hooks or {}), **accumulated}
    grad = value.grad if value.is_leaf or value.retains_grad else None  # torch warns about any other
    state[GRAD, f"{where}.grad"] = None if grad is None else grad.detach().clone()
    for key, kept in vars(value).items():
        state[ATTRIBUTES, f"{where}.{key}"] = _Same(kept)
    if not value.is_leaf:
        state[ATTRIBUTES, f"{where}.retains_grad"] = value.retains_grad


def _add_module(state: State, where: str, module: nn.Module) -> None:
    state[MODE, f"{where}.training"] = module.training
    state[HOOKS, where] = {
        (table, n): hook for table in _HOOK_TABLES for n, hook in getattr(module, table).items()
    }
    library = type(module).__module__.startswith("torch")
    for key, value in vars(module).items():
        if key not in _OWN:
            # The modules of a case may count their calls.
            state[ATTRIBUTES, f"{where}.{key}"] = _Same(value) if library or callable(value) else None
    for table in ("_modules", "_parameters", "_buffers"):
        state[ATTRIBUTES, f"{where}.{table}"] = [(k, id(v)) for k, v in vars(module)[table].items()]


class _Same:
    """A value that equals only itself, or an equal plain value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return NotImplemented
        one, two = self._value, other._value
        plain = type(one) in (bool, int, float, str, type(None)) and type(one) is type(two)
        return one is two or (plain and (one == two or one != one))

    __hash__ = None  # type: ignore[assignment]


def _process() -> State:
    """Return the state of the process that an answer might change."""
    state: State = {
        (PROCESS, "torch.is_grad_enabled()"): torch.is_grad_enabled(),
        (PROCESS, "torch.is_inference_mode_enabled()"): torch.is_inference_mode_enabled(),
        (PROCESS, "torch.get_default_dtype()"): torch.get_default_dtype(),
        (PROCESS, "torch.is_anomaly_enabled()"): torch.is_anomaly_enabled(),
        (PROCESS, "torch.is_autocast_enabled('cpu')"): torch.is_autocast_enabled("cpu"),
        (
            PROCESS,
            "torch.are_deterministic_algorithms_enabled()",
        ): torch.are_deterministic_algorithms_enabled(),
        (PROCESS, "torch.get_num_threads()"): torch.get_num_threads(),
        (RNG, "torch.get_rng_state()"): torch.get_rng_state(),
        (RNG, "random.getstate()"): random.getstate(),
    }
    for name, table in GLOBAL_HOOKS.items():
        state[HOOKS, f"torch.nn.modules.module.{name}"] = dict(table)
    if frames := sys.modules.get("torch._dynamo.eval_frame"):
        state[PROCESS, "torch.compiler.set_stance"] = str(getattr(frames, "_stance", None))
    return state
