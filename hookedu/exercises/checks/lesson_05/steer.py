"""What decides about 05.4, `steer(module, direction, strength)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE, handle_works
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.steer import PROBE, Case
from hookedu.exercises.tools import same

_CALL = "steer(fc1, {case.direction}, {case.strength:g})"
_GIVEN = (
    "x = {case.x}; fc1.weight = {case.first}; fc2.weight = {case.second}; {key.double}fc1.{case.mode}(); "
    + _CALL
)


class _Key:
    """What fc1 makes of the input, the push, and what fc2 returns without it and with it."""

    def __init__(self, case: Case) -> None:
        self.case, self.made, self.push = case, case.x @ case.first.T, case.strength * case.direction
        self.plain, self.steered = self.fc2(self.made), self.fc2(self.made + self.push)
        self.double = "net.double(); " if case.first.dtype == torch.float64 else ""
        zero = torch.zeros(2, dtype=case.first.dtype)
        self.kept = {"fc1.weight": case.first, "fc1.bias": zero, "fc2.weight": case.second, "fc2.bias": zero}

    def fc2(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the output of the second layer."""
        return hidden @ self.case.second.T


def _runs(saw: Any, key: Any) -> list[Any]:
    """Return for each run whether it was steered: True, False, or None for any other result."""
    return [True if same(out, key.steered) else False if same(out, key.plain) else None for out in saw.runs]


def _wrong(saw: Any, key: Any) -> int:
    """Return the place of the first run that was not steered."""
    return next(n for n, steered in enumerate(_runs(saw, key)) if not steered)


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        Check(
            "untouched", "weights", lambda key: key.kept, essential=True, mistakes={"changes_weights": True}
        ),
        Check(
            "steers",
            "steered",
            want=lambda key: key.steered,
            ok=lambda saw, key: all(_runs(saw, key)),
            points=2,
            essential=True,
            given=[
                Say("under_no_grad", when=lambda saw, key: _wrong(saw, key) == 2),
                _GIVEN + "; fc2(fc1(x))",
            ],
            expected="{want}",
            got=lambda saw, key: show(saw.runs[_wrong(saw, key)]),
            mistakes={
                "steers_once": lambda saw, key: (
                    _wrong(saw, key) and _runs(saw, key) == [n < _wrong(saw, key) for n in range(4)]
                ),
                "only_with_grad": lambda saw, key: _runs(saw, key) == [True, True, False, True],
                "adds_up": Gives(lambda key: key.steered),
                "only_training": lambda saw, key: key.case.mode == "eval" and same(saw.steered, key.plain),
                "only_positive": lambda saw, key: key.case.strength < 0 and same(saw.steered, key.plain),
                "only_batches": lambda saw, key: key.made.dim() != 2 and same(saw.steered, key.plain),
                "no_return": lambda saw, key: saw.hooks and same(saw.steered, key.plain),
                "removed_at_once": lambda saw, key: saw.handle == HANDLE and same(saw.steered, key.plain),
                "not_registered": Gives(lambda key: key.plain),
                "replaces_output": Gives(
                    lambda key: key.fc2(key.push), lambda key: key.fc2(key.push.expand_as(key.made))
                ),
                "no_strength": Gives(lambda key: key.fc2(key.made + key.case.direction)),
                "ignores_sign": lambda saw, key: (
                    key.case.strength < 0 and same(saw.steered, key.fc2(key.made - key.push))
                ),
                "wrong_sign": Gives(lambda key: key.fc2(key.made - key.push)),
                "steers_input": Gives(lambda key: key.fc2((key.case.x + key.push) @ key.case.first.T)),
            },
        ),
        Check(
            "others", "output", lambda key: key.made, points=1, given=Say("made"), mistakes={"in_place": True}
        ),
        Check(
            "gradient",
            "x_grad",
            want=lambda key: torch.ones_like(key.made) @ key.case.second @ key.case.first,
            points=1,
            given=_GIVEN + "; fc2(fc1(x)).sum().backward()",
            label="x.grad",
            mistakes={"cuts_gradient": lambda saw, key: saw.x_grad is None or not saw.x_grad.any()},
        ),
        handle_works(_CALL, silent=lambda saw, key: same(saw.after, key.plain)),
    ],
    raises={"returns_tuple": r"must be Tensor, not (tuple|list)"} | CALLS_NOW | WRONG_ARGUMENTS,
)
