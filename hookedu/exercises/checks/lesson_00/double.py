"""What decides about 00.1, `double(grad)`."""

from dataclasses import replace
from typing import Any

import torch

from hookedu.exercises.checks.common import NO_ARGUMENT, returns
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_00.double import EMPTY, PROBE, alike


def _other_dtype(saw: Any, grad: torch.Tensor) -> bool:
    return saw.result.dtype != grad.dtype and not saw.changed


_RETURNS = returns(
    "doubles",
    want=lambda grad: 2 * grad,
    points=2,
    mistakes={
        "not_a_tensor": lambda saw, grad: not isinstance(saw.result, torch.Tensor),
        "other_dtype": _other_dtype,
        "always_two": lambda saw, grad: saw.result.numel() and (saw.result == 2).all(),
        "adds_two": Gives(lambda grad: grad + 2),
        "squares": Gives(lambda grad: grad**2),
        "halves": Gives(lambda grad: grad / 2),
        "changes_nothing": Gives(lambda grad: grad),
    },
)


_DOUBLES = replace(
    _RETURNS,
    ok=lambda saw, grad: not saw.changed and alike(saw.result, 2 * grad),
    equal=alike,
)


def _only_itself(saw: Any, grad: torch.Tensor) -> bool:
    """Check whether a gradient of zeros came back as it is, and nothing else is wrong."""
    return saw.itself and saw.later is None and alike(saw.second, -2 * grad)


_NEW = Check(
    "new",
    ok=lambda saw, grad: saw.later is None and alike(saw.second, -2 * grad) and not saw.itself,
    essential=True,
    given=lambda saw, grad: (
        f"grad = {show(torch.zeros_like(grad))}; result = double(grad)"
        if _only_itself(saw, grad)
        else f"grad = {show(grad)}; first = double(grad); grad.neg_(); second = double(grad)"
    ),
    expected=lambda saw, grad: (
        "(result is grad) == False"
        if _only_itself(saw, grad)
        else f"second == {show(-2 * grad)}"
        if saw.later is None
        else f"first == {show(2 * grad)}"
    ),
    got=lambda saw, grad: (
        "(result is grad) == True"
        if _only_itself(saw, grad)
        else f"second == {show(saw.second)}"
        if saw.later is None
        else f"first == {show(saw.later)}"
    ),
    mistakes={"gives_grad_itself": _only_itself, "reuses_a_tensor": lambda saw, grad: saw.later is not None},
)


EXERCISE = Exercise(
    PROBE,
    key=lambda case: case[0],  # grad
    given="grad = {key}; result = double(grad)",
    checks=[
        _DOUBLES,
        _NEW,
        Check(
            "empty",
            "empty",
            want=lambda grad: [*EMPTY],
            essential=True,
            given=f"result = double(torch.ones{EMPTY})",
            label="list(result.shape)",
        ),
    ],
    raises=NO_ARGUMENT | {"calls_broken": r"unsupported operand type.*NoneType"},
)
