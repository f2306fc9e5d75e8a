"""Checks shared by the exercises of lesson 10, and how they compare and show numbers."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from hookedu.exercises import conduct
from hookedu.exercises.checks import common
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Of, Say, Throughout
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.structures import mapped

RAISES = RETURNS_TUPLE | CALLS_NOW | WRONG_ARGUMENTS
Mistakes = Mapping[str, bool | Of | Gives | Throughout]


def equals_rounded(id: str, want: Any, mistakes: Mistakes, observed: str = "", **row: Any) -> Check:
    """Require what `common.equals` does; show the values rounded, unless they then look alike."""

    def lines_of(saw: Any, key: Any) -> list[str]:
        values = want(key), getattr(saw, observed or id)
        lines = [show(rounded(value)) for value in values]
        return lines if lines[0] != lines[1] else [show(value) for value in values]

    lines: dict[str, Any] = {
        "expected": lambda saw, key: lines_of(saw, key)[0],
        "got": lambda saw, key: lines_of(saw, key)[1],
    }
    return common.equals(id, want, mistakes, observed, **(lines | row))


def means(mistakes: Mistakes, **row: Any) -> Check:
    """Require the numbers `key.means`; the exercise has two mistakes besides those given."""
    tensors: Mistakes = {
        "keeps_tensors": lambda saw, key: torch.Tensor in {*map(type, saw.means.values())},
        "not_python": lambda saw, key: Opaque in {*map(type, saw.means.values())},
    }
    return equals_rounded(
        "means", lambda key: key.means, {**tensors, **mistakes}, points=2, equal=are_close, **row
    )


def unchanged(want: Any) -> Check:
    """Require that the output of the model, observed as `out`, is what it is without hooks."""
    mistakes: Mistakes = {
        "not_run": lambda saw, key: saw.out is None,
        "other_mode": lambda saw, key: not saw.training,
        "changes_output": True,
    }
    return Check(
        "unchanged", "out", want, essential=True, equal=outputs_close, label="model(x)", mistakes=mistakes
    )


def outputs_close(out: Any, want: torch.Tensor) -> bool:
    """Check whether an output is close, whatever its dtype."""
    return out.shape == want.shape and torch.allclose(
        out.double(), want.double(), rtol=1e-4, atol=1e-6, equal_nan=True
    )


def clean(given: str) -> Check:
    """Require that no hook is left, for 1 point. Global hooks count among the settings of the process."""

    def left(saw: Any) -> list[str]:
        process = conduct.PROCESS, "_hooks"
        return [at for kind, at in saw.conduct if kind == conduct.HOOKS or (kind, at[-6:]) == process]

    where: dict[str, Any] = {"where": lambda saw, key: left(saw)[0]}
    return Check(
        "clean",
        ok=lambda saw, key: not left(saw),
        points=1,
        given=given,
        expected=Say("conduct_no_hooks", **where),
        got=Say("conduct_more_hooks", **where),
        mistakes={"leaves_hooks": True},
    )


def cleans_up(call: str) -> list[Check]:
    """Require that no hooks are left, nor by an exception, which comes through; `call` has {} in place of the model."""

    def after(saw: Any) -> dict[str, str]:
        # What an ordinary call leaves changed as well is not for want of a `finally`; of modes and the like, conduct tells.
        other = {at for kind, at in saw.conduct if kind not in (conduct.HOOKS, conduct.UNRESTORED)}
        return {
            kind: at
            for kind, at in saw.conduct
            if kind == conduct.SWALLOWS
            or (
                kind == conduct.UNRESTORED
                and at not in other
                and not at.endswith((".training", ".requires_grad"))
            )
        }

    def swallowed(saw: Any, key: Any) -> bool:
        return conduct.SWALLOWS in after(saw)

    def setting(saw: Any, key: Any) -> bool:
        at = where["where"](saw, key)
        return at.startswith("torch.") and not at.endswith("_hooks")

    # The first place: the exception, where one was swallowed.
    where: dict[str, Any] = {
        "where": lambda saw, key: after(saw).get(conduct.SWALLOWS) or after(saw)[conduct.UNRESTORED]
    }
    after_error = Check(
        "clean_after_error",
        ok=lambda saw, key: not after(saw),
        points=1,
        given=call.format("broken"),
        expected=[Say("conduct_comes_through", when=swallowed), Say("conduct_after_error", **where)],
        got=[
            Say("conduct_is_gone", when=swallowed, **where),
            Say("conduct_changed", when=setting, **where),
            Say("conduct_more_hooks", **where),
        ],
        mistakes={"swallows": swallowed, "no_finally": True},
    )
    return [clean(call.format("model")), after_error]


def is_close(got: Any, expected: float) -> bool:
    """Check whether `got` is a Python number that equals `expected` but for rounding."""
    if type(got) not in (int, float):
        return False
    return math.isclose(got, expected, rel_tol=1e-4, abs_tol=1e-6) or (got != got and expected != expected)


def are_close(got: Any, expected: dict[str, float]) -> bool:
    """Check whether `got` has the same names, and for each a Python number that is close."""
    same_names = isinstance(got, dict) and got.keys() == expected.keys()
    return same_names and all(is_close(got[name], number) for name, number in expected.items())


def rounded(value: Any) -> Any:
    """Round floats to the digits that a message shows, also in containers and scalar tensors."""
    return mapped(_rounded, value)


def _rounded(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return Opaque(f"tensor({value.item():g})")
    return float(f"{value:.4g}") if isinstance(value, float) else value
