"""What decides about 15.2, `update_ratios(model, optimizer)`."""

import math
from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.lesson_15.shared import (
    as_lists,
    close_to,
    ends,
    holds,
    is_manager,
    numbers,
    shown,
)
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque
from hookedu.exercises.probes.lesson_15.update_ratios import (
    LOSS,
    PROBE,
    STEPS,
    TINY,
    Case,
    between,
    make,
    state_of,
)
from hookedu.exercises.tools import all_close, copies


def _ratio(moved: torch.Tensor, size: torch.Tensor) -> Any:
    return (moved / size).item() if size else None


# What likely mistakes compute from a parameter before and after a step, and its gradient.
_FORMULAS: dict[str, Callable[..., Any]] = {
    "right": lambda old, new, grad: _ratio((new - old).norm(), old.norm()),
    "divides_by_new": lambda old, new, grad: _ratio((new - old).norm(), new.norm()) if old.norm() else None,
    "difference_of_norms": lambda old, new, grad: _ratio((new.norm() - old.norm()).abs(), old.norm()),
    "signed_difference": lambda old, new, grad: _ratio(new.norm() - old.norm(), old.norm()),
    "of_the_gradient": lambda old, new, grad: _ratio(
        grad.norm() if grad is not None else 0 * old.norm(), old.norm()
    ),
    "only_gradient": lambda old, new, grad: grad.norm().item() if grad is not None else None,
    "not_divided": lambda old, new, grad: (new - old).norm().item(),
    "mean": lambda old, new, grad: _ratio((new - old).abs().mean(), old.abs().mean()),
    "largest": lambda old, new, grad: _ratio((new - old).abs().max(), old.abs().max()),
    "squares": lambda old, new, grad: _ratio((new - old).square().sum(), old.square().sum()),
    "upside_down": lambda old, new, grad: _ratio(old.norm(), (new - old).norm()) if old.norm() else None,
    "nothing_moved": lambda old, new, grad: _ratio(0 * old.norm(), old.norm()),
}


class _Key:
    """The entries that are wanted and those of likely mistakes, from steps without any hook."""

    def __init__(self, case: Case) -> None:
        self.case = case
        model, optimizer = make(case)
        self.names = [name for name, _ in model.named_parameters()]
        runs: dict[str, list[Any]] = {name: [] for name in (*_FORMULAS, "since_last", "by_rate", "whole")}
        self.values = []
        previous = {name: copies(param) for name, param in model.named_parameters()}
        for step in range(STEPS):
            between(case, model, optimizer, step)
            old = {name: copies(param) for name, param in model.named_parameters()}
            grads = {name: copies(param.grad) for name, param in model.named_parameters()}
            optimizer.step()
            new = {name: copies(param) for name, param in model.named_parameters()}
            rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
            for name, formula in _FORMULAS.items():
                runs[name].append([[n, formula(old[n], new[n], grads[n])] for n in self.names])
            last = [[n, _ratio((new[n] - previous[n]).norm(), previous[n].norm())] for n in self.names]
            runs["since_last"].append(last)
            runs["by_rate"].append(
                [
                    [
                        n,
                        _ratio(
                            rates.get(id(param), 0.0) * grads[n].norm()
                            if grads[n] is not None
                            else 0 * old[n].norm(),
                            old[n].norm(),
                        ),
                    ]
                    for n, param in model.named_parameters()
                ]
            )
            self.values.append(state_of(model))
            previous = new
        self.runs, self.right = runs, runs["right"]
        self.resumed = self._after_raised()
        *own, late, _ = case.names
        self.of_optimizer = [{*own, late} if step == STEPS - 1 else {*own} for step in range(STEPS)]

    def _after_raised(self) -> list[Any]:
        """Return the entry of a first step before which the weights have grown, as it is where a step has raised."""
        model, optimizer = make(self.case)
        between(self.case, model, optimizer, 2)
        old = {name: copies(param) for name, param in model.named_parameters()}
        optimizer.step()
        right = _FORMULAS["right"]
        return [[[n, right(old[n], param.detach(), None)] for n, param in model.named_parameters()]]


def _steps(saw: Any) -> Any:
    """Return the last entry after each step."""
    return [entries[-1] for entries in saw.steps]


def _wanted(saw: Any, key: _Key) -> bool:
    """Check whether each step added its entry and left the earlier ones."""
    return close_to(saw.steps, [key.right[: n + 1] for n in range(STEPS)])


def _gives(*names: str) -> Callable[[Any, _Key], bool]:
    """Return the condition that the entries are those of one of these mistakes, but for where there is no ratio."""

    def same_but_for_none(got: Any, wrong: Any) -> bool:
        got, wrong = numbers(got), numbers(wrong)
        return len(got) == len(wrong) and all(
            [n for n, _ in one] == [n for n, _ in two]
            and all(b is None or close_to(a, b) for (_, a), (_, b) in zip(one, two, strict=True))
            for one, two in zip(got, wrong, strict=True)
        )

    return lambda saw, key: any(same_but_for_none(_steps(saw), key.runs[name]) for name in names)


def _right_but(where: Callable[[Any, Any], bool]) -> Callable[[Any, _Key], bool]:
    """Return the condition that the entries are right but for values of which this is true: (got, want)."""

    def holds_for(saw: Any, key: _Key) -> bool:
        got = _steps(saw)
        names = [[pair[0] for pair in one] if isinstance(one, list) else None for one in got]
        if names != [key.names] * STEPS:
            return False
        pairs = [
            pair for one, want in zip(got, key.right, strict=True) for pair in zip(one, want, strict=True)
        ]
        return all(close_to(one, want) or where(one[1], want[1]) for one, want in pairs)

    return holds_for


def _other(holds: Callable[[Any, _Key], bool]) -> Callable[[Any, _Key], bool]:
    """Return the condition that the entries are not right, as where there are too many of them, and this one."""
    return lambda saw, key: not close_to(_steps(saw), key.right) and holds(saw, key)


def _first_wrong(saw: Any, key: _Key) -> int:
    wrong = (n for n in range(STEPS) if not close_to(saw.steps[n], key.right[: n + 1]))
    return next(wrong, 0)


def _lines(saw: Any, key: _Key) -> tuple[str, str]:
    n = _first_wrong(saw, key)
    entries = saw.steps[n]
    if not isinstance(entries, list) or len(entries) == n + 1:
        # A later step may have changed the entry of an earlier one.
        n = next((m for m in range(n) if not close_to(entries[m], key.right[m])), n)
        return f"steps[{n}] == {shown(key.right[n])}", f"steps[{n}] == {shown(entries[n])}"
    return f"len(steps) == {n + 1}", f"len(steps) == {len(entries)}"


_ADDED = [[["first", math.nan], ["late", 0.5 * TINY]]]
_GIVEN = "with update_ratios(model, optimizer) as steps: optimizer.step()"

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        is_manager("with update_ratios(model, optimizer) as steps:"),
        Check(
            "unchanged",
            ok=lambda saw, key: all(map(all_close, saw.values, key.values)),
            essential=True,
            expected=Say("as_without"),
            got=Say("weights_differ"),
            mistakes={"changes_weights": True},
        ),
        Check(
            "steps",
            ok=_wanted,
            points=4,
            essential=True,
            given=[Say("at_step", when=lambda saw, key: saw.manager, n=_first_wrong, code=_GIVEN), _GIVEN],
            expected=lambda saw, key: _lines(saw, key)[0],
            got=lambda saw, key: _lines(saw, key)[1],
            mistakes={
                "not_on_inside": lambda saw, key: saw.on == 0 and saw.steps[-1] == [],
                "no_steps": lambda saw, key: saw.steps[-1] == [],
                "keeps_tensors": lambda saw, key: (
                    holds(saw.steps, torch.Tensor) and close_to(numbers(_steps(saw)), key.right)
                ),
                "not_python": lambda saw, key: holds(saw.steps, Opaque),
                "every_optimizer": lambda saw, key: len(saw.other) > len(saw.steps[0]) > 0,
                "no_copy": _gives("nothing_moved"),
                "one_dictionary": lambda saw, key: (
                    len(saw.steps[-1]) == STEPS and all(entry == saw.steps[-1][-1] for entry in saw.steps[-1])
                ),
                "one_entry": lambda saw, key: len(saw.steps[-1]) == 1,
                "one_number": lambda saw, key: all(type(entry) is float for entry in _steps(saw)),
                "only_of_optimizer": lambda saw, key: (
                    [{n for n, _ in entry} for entry in _steps(saw)] == key.of_optimizer
                ),
                "leaves_out": lambda saw, key: any(len(entry) < len(key.names) for entry in _steps(saw)),
                "divides_by_new": _gives("divides_by_new"),
                "difference_of_norms": _gives("difference_of_norms", "signed_difference"),
                "by_rate": _gives("by_rate"),
                "of_the_gradient": _gives("of_the_gradient"),
                "only_gradient": _gives("only_gradient"),
                "since_last": _gives("since_last"),
                "not_divided": _gives("not_divided"),
                "other_measure": _gives("mean", "largest", "squares"),
                "upside_down": _gives("upside_down"),
                "no_none": _other(_gives("right")),
                "none_too_often": _other(_right_but(lambda got, want: got is None)),
                "adds_to_divisor": _other(
                    _right_but(lambda got, want: type(got) is float and (want is None or got < want > 1e6))
                ),
            },
        ),
        Check(
            "closure",
            "returned",
            want=lambda key: LOSS,
            essential=True,
            given="optimizer.step(closure)",
            expected="{want}",
            got="{saw.returned}",
        ),
        Check(
            "given",
            ok=lambda saw, key: saw.given,
            essential=True,
            given="optimizer.step(closure)",
            expected=Say("gets_closure"),
            got=Say("no_closure"),
        ),
        Check(
            "resumed",
            ok=lambda saw, key: close_to(saw.resumed, key.resumed),
            essential=True,
            given=Say("step_raised"),
            expected=lambda saw, key: f"steps[-1:] == {shown(key.resumed)}",
            got=lambda saw, key: f"steps[-1:] == {shown(saw.resumed)}",
            mistakes={"stale": lambda saw, key: bool(saw.resumed)},
        ),
        Check(
            "added",
            ok=lambda saw, key: as_lists(saw.added) == str(_ADDED),
            essential=True,
            given=Say("added"),
            expected=lambda saw, key: f"steps[-1:] == {shown(_ADDED)}",
            got=lambda saw, key: (
                f"steps[-1:] == {saw.added if isinstance(saw.added, str) else shown(saw.added)}"
            ),
            mistakes={
                "names_at_entry": lambda saw, key: (
                    "'first'" in str(saw.added) and "'late'" not in str(saw.added)
                ),
                "none_for_nan": lambda saw, key: "None" in str(saw.added),
                "rounded": lambda saw, key: close_to(saw.added[0][1], ["late", 0.0]),
            },
        ),
        *ends(
            _GIVEN,
            lambda saw, key: saw.late == STEPS,
            off={"no_grad_inside": lambda saw, key: not saw.modes[0]},
        ),
    ],
    raises={
        "divides_by_zero": r"ZeroDivisionError",
        "none_grad": r"'NoneType' object has no attribute '(norm|abs|square|pow|detach|clone|item|flatten)'",
        "returns_value": r"must return None or a tuple of \(new_args, new_kwargs\)",
        "no_manager_error": r"generator didn't yield|NoneType' object is not an iterator|__exit__|__enter__",
        "three_arguments": r"positional arguments? but \d (?:was|were) given|missing \d required positional",
    },
)
