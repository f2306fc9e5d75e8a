"""Checks shared by the exercises of lesson 10, and how they compare and show numbers."""

import math
from typing import Any

import torch

from hookedu.exercises.checks import common
from hookedu.exercises.checks.common import none_left
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.observation import Opaque, show

RAISES = RETURNS_TUPLE | CALLS_NOW | WRONG_ARGUMENTS


def equals_rounded(id: str, want: Any, mistakes: dict[str, Any], observed: str = "", **row: Any) -> Check:
    """Require what `common.equals` does; show the values rounded."""
    lines: dict[str, Any] = {
        "expected": lambda saw, key: show(rounded(want(key))),
        "got": lambda saw, key: show(rounded(getattr(saw, observed or id))),
    }
    return common.equals(id, want, mistakes, observed, **(lines | row))


def means(mistakes: dict[str, Any], **row: Any) -> Check:
    """Require the numbers `key.means`; the exercise has the mistake "keeps_tensors" besides those given."""
    tensors = {"keeps_tensors": lambda saw, key: {*map(type, saw.means.values())} & {torch.Tensor, Opaque}}
    return equals_rounded(
        "means", lambda key: key.means, tensors | mistakes, points=2, equal=are_close, **row
    )


def unchanged(want: Any, **row: Any) -> Check:
    """Require that the output of the model, observed as `out`, is what it is without hooks."""
    mistakes = {"changes_output": True}
    return Check("unchanged", "out", want, essential=True, label="model(x)", mistakes=mistakes, **row)


def cleans_up(call: str) -> list[Check]:
    """Require that no hooks are left, nor by an exception, which gets through; `call` has {} in place of the model."""
    after_error = Check(
        "clean_after_error",
        ok=lambda saw, key: saw.left_by_error == 0 and saw.passed_on,
        points=1,
        given=call.format("broken"),
        expected=Say("comes_through"),
        got=[Say("came_through", when=lambda saw, key: saw.passed_on), Say("did_not_come_through")],
        mistakes={"no_finally": lambda saw, key: saw.left_by_error, "swallows": True},
    )
    return [none_left(call.format("model"), "leaves_hooks", id="clean"), after_error]


def is_close(got: Any, expected: float) -> bool:
    """Check whether `got` is a Python number that equals `expected` but for rounding."""
    return type(got) in (int, float) and math.isclose(got, expected, rel_tol=1e-4, abs_tol=1e-6)


def are_close(got: Any, expected: dict[str, float]) -> bool:
    """Check whether `got` has the same names, and for each a Python number that is close."""
    same_names = isinstance(got, dict) and got.keys() == expected.keys()
    return same_names and all(is_close(got[name], number) for name, number in expected.items())


def rounded(value: Any) -> Any:
    """Round floats to the digits that a message shows, also inside lists, dicts and scalar tensors."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return Opaque(f"tensor({value.item():g})")
    return float(f"{value:.4g}") if isinstance(value, float) else value
