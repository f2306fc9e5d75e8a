"""Checks shared by the exercises of lesson 02."""

from collections.abc import Callable, Mapping
from typing import Any

from hookedu.exercises.criteria import Check, Of

HOOKS_EVERYTHING = {"hooks_everything": r"cannot register a hook on a tensor that doesn't require gradient"}
GRAPH = "x = {case.x}; y = {case.k:g} * x; loss = ({case.w} * y).sum()"


def unchanged(want: Callable[[Any], Any], mistakes: Mapping[str, Of | bool], given: str = "") -> Check:
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
