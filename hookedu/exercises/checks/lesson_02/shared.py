"""Checks shared by the exercises of lesson 02."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of
from hookedu.exercises.observation import show

HOOKS_EVERYTHING = {"hooks_everything": r"cannot register a hook on a tensor that doesn't require gradient"}
LOCAL_SEEN = {"local_seen": r"^UnboundLocalError: .*'seen'"}
GRAPH = "x = {case.x}; y = {case.k:g} * x; loss = ({case.w} * y).sum()"


def unchanged(want: Callable[[Any], Any], mistakes: Mapping[str, Of | bool], given: Any = "") -> Check:
    """Require that x.grad is what it is without hooks: watching must not change gradients."""
    return Check("unchanged", "x_grad", want, essential=True, label="x.grad", given=given, mistakes=mistakes)


def left_alone(given: str) -> Check:
    """Require that no requires_grad was switched on; observes `switched`."""
    return Check(
        "left_alone",
        ok=lambda saw, key: not saw.switched,
        essential=True,
        given=given,
        expected="requires_grad == False",
        got="requires_grad == {saw.switched}",
        mistakes={"switches_on": True},
    )


def lines(label: str, observed: str, want: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the lines expected and got of a check that compares `observed` with `want`.

    Where both print alike, they name the types as well.
    """

    def line(value: Any, other: Any) -> str:
        if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
            value, other = ({name: one[name] for name in sorted(one)} for one in (value, other))
        return f"{label} == {show(value)}" + (f" ({_kinds(value)})" if show(value) == show(other) else "")

    return {
        "expected": lambda saw, key: line(want(key), getattr(saw, observed)),
        "got": lambda saw, key: line(getattr(saw, observed), want(key)),
    }


def _kinds(values: Any) -> str:
    """Return the types of the items of a list or dictionary, as dtypes where they are tensors."""
    items = values.values() if isinstance(values, dict) else values
    return ", ".join({str(v.dtype) if isinstance(v, torch.Tensor) else type(v).__name__: v for v in items})
