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

from hookedu.exercises.snapshots import (
    ARGUMENT,
    ATTRIBUTES,
    BUFFERS,
    GRAD,
    HOOKS,
    MODE,
    OTHERS,
    PROCESS,
    REQUIRES_GRAD,
    RNG,
    VALUES,
    Before,
    Place,
    ProcessBefore,
    differences,
    snapshot,
)

__all__ = [
    "ARGUMENT",
    "ATTRIBUTES",
    "BUFFERS",
    "GRAD",
    "HANDLES",
    "HOOKS",
    "MODE",
    "OTHERS",
    "PROCESS",
    "REQUIRES_GRAD",
    "RNG",
    "RUNS",
    "STATE",
    "SWALLOWS",
    "UNRESTORED",
    "VALUES",
    "Conduct",
    "Interruption",
    "Stopped",
]

# Kinds of state that `Probe.leaves` may name, each also the id of the breach: those of `snapshots`, and this one.
HANDLES = "handles"  # no breach: hooks may stay until the probe has removed them by their handles
# Breaches that no exercise allows, beside ARGUMENT (but for the arguments in `Probe.changes`) and PROCESS.
RUNS = "runs"  # the model ran more often than `Probe.runs`
STATE = "state"  # a second call with equal input gives another result
SWALLOWS = "swallows"  # an exception inside the model did not come through
UNRESTORED = "unrestored"  # after such an exception; only with `Probe.restores`


class Interruption(
    RuntimeError, ValueError, TypeError, KeyError, IndexError, AssertionError, ArithmeticError
):
    """Raised inside a model or a block, as running out of memory would be: no answer may swallow it.

    It is an exception of many kinds at once, as an answer may single out none of them.
    """

    __str__ = Exception.__str__  # that of KeyError shows the `repr` of the message


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
        Raise an exception of this type at this one of the `calls`, counted from 0.
    called : callable, optional
        Called before each call of the answer.

    Attributes
    ----------
    calls : int
        Calls of modules made while a model that the answer was given runs.
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
        called: Callable[[], None] = lambda: None,
    ) -> None:
        self._answer, self._changes, self._leaves = answer, changes, leaves
        self._runs, self._counts, self._interrupt, self._called = runs, counts, interrupt, called
        self._inside = False
        self._names: list[str] | None = None  # of the answer's parameters, found at the first call
        self._first: dict[int, list[Before]] = {}
        self._breaches: dict[Place, None] = {}
        self.calls, self.interrupted = 0, False
        self.swallowed: list[list[str]] = []
        self._after_error: list[Place] = []
        self._process: ProcessBefore | None = None  # at the latest call; a probe may change it between two
        # Of Python's RNG, which no probe uses, before the first call: to copy and compare it at each takes two thirds of
        # the time of watching.
        self._random: Any = None

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
        # These change whenever a probe runs the model.
        may = {*self._leaves, GRAD, VALUES, BUFFERS, ARGUMENT, RNG}
        for before in self._first.values():
            left |= dict.fromkeys(differences(before, may))
        if self._process:
            left |= dict.fromkeys(self._process.differences({*may, PROCESS, OTHERS}))
        if RNG not in self._leaves and self._random not in (None, random.getstate()):
            self._breaches[RNG, "random.getstate()"] = None
        if unrestored:
            return [[UNRESTORED, where] for _, where in left]
        return [list(breach) for breach in self._breaches | left]

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._called()
        may = {*self._leaves} | ({HOOKS} if HANDLES in self._leaves else set())
        watched: list[tuple[set[str], list[Before]]] = []
        models: list[nn.Module] = []
        with torch.no_grad():
            for place, name, value in self._named(args, kwargs):
                allowed = may | {ARGUMENT} if place in self._changes else may
                before = snapshot(name, value, allowed)
                watched.append((allowed, before))
                if before:
                    self._first.setdefault(id(value), before)
                if isinstance(value, nn.Module):
                    models.append(value)
        self._process = process = ProcessBefore(may)
        self._random = self._random or random.getstate()
        self._inside = True
        try:
            with self._counting(models) as runs:
                result = self._answer(*args, **kwargs)
        except BaseException:
            self._after_error = process.differences({*self._leaves, RNG})
            raise
        finally:
            self._inside = False
        if self.interrupted:
            assert self._interrupt
            kind = "Exception" if issubclass(self._interrupt[0], Exception) else "KeyboardInterrupt"
            self.swallowed = [[SWALLOWS, kind]]
            return result
        found = process.differences(may)
        for allowed, before in watched:
            found += differences(before, allowed)
        if self._runs is not None and max(runs, default=0) > self._runs:
            found.append((RUNS, f"{max(runs)}"))
        self._breaches |= dict.fromkeys(found)
        return result

    @contextlib.contextmanager
    def _counting(self, models: list[nn.Module]) -> Iterator[list[int]]:
        """Count the calls of each model, and interrupt one of the calls of their parts if asked to."""
        runs, depth = [0] * len(models), 0

        def counted(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            mine = [n for n, model in enumerate(models) if module is model]
            for n in mine:
                runs[n] += 1
            if not (depth or mine):
                return call(module, *args, **kwargs)
            self.calls += 1
            if self._interrupt and self.calls - 1 == self._interrupt[1]:
                self.interrupted = True
                raise self._interrupt[0]("out of memory")
            depth += bool(mine)
            try:
                return call(module, *args, **kwargs)
            finally:
                depth -= bool(mine)

        # Not a global hook: an answer that lists the hooks would find it. And not `__call__`, which Python keeps in every
        # one of torch's thousand classes of modules as well: to set it takes as long as ten calls of a layer, and in a
        # fork copies the memory of them all.
        outer, call = nn.Module.__call__, nn.Module._call_impl
        compiler = "torch._dynamo" in sys.modules
        if models and self._counts:
            nn.Module._call_impl = counted  # type: ignore[method-assign]
        try:
            yield runs
        finally:
            if nn.Module._call_impl is not call:
                nn.Module._call_impl = call
            if nn.Module.__call__ is not outer:  # the answer has replaced it
                nn.Module.__call__ = outer
            # The compiler, which `checkpoint` loads, remembers the call that it finds then as the original.
            if not compiler:
                _replace_in_compiler(counted, call)

    def _named(self, args: tuple, kwargs: dict[str, Any]) -> list[tuple[int | str, str, Any]]:
        """Return the arguments as (position or keyword, name, value), with the names that the answer gives them."""
        if self._names is None:
            try:
                parameters = list(inspect.signature(self._answer).parameters.values())
            except (TypeError, ValueError):
                parameters = []
            plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            self._names = [p.name for p in parameters if p.kind in plain]
        names = self._names[: len(args)] + [f"args[{n}]" for n in range(len(self._names), len(args))]
        return [*zip(range(len(args)), names, args, strict=True), *((k, k, v) for k, v in kwargs.items())]


def _replace_in_compiler(old: Any, new: Any) -> None:
    """Replace what the modules of the compiler have kept; does nothing unless it has been loaded."""
    for module in [module for name, module in sys.modules.items() if name.startswith("torch._dynamo")]:
        for name in [name for name, value in vars(module).items() if value is old]:
            setattr(module, name, new)
