"""What decides about 05.4, `steer(module, direction, strength)`."""

import torch

from hookedu.exercises.checks.common import HANDLE, handle_works
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.steer import PROBE, Case
from hookedu.exercises.tools import same

_CALL = "steer(fc1, {case.direction}, {case.strength:g})"
_GIVEN = "x = {case.x}; fc1.weight = {case.first}; fc2.weight = {case.second}; fc1.{case.mode}(); " + _CALL


class _Key:
    """What fc1 makes of the input, the push, and what fc2 returns without it and with it."""

    def __init__(self, case: Case) -> None:
        self.case, self.made, self.push = case, case.x @ case.first.T, case.strength * case.direction
        self.plain, self.steered = self.fc2(self.made), self.fc2(self.made + self.push)
        zero = torch.zeros(2)
        self.kept = {"fc1.weight": case.first, "fc1.bias": zero, "fc2.weight": case.second, "fc2.bias": zero}

    def fc2(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the output of the second layer."""
        return hidden @ self.case.second.T


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
            ok=lambda saw, key: same([saw.steered, saw.again], [key.steered] * 2),
            points=2,
            essential=True,
            given=_GIVEN + "; fc2(fc1(x))",
            expected="{want}",
            got=lambda saw, key: show(saw.again if same(saw.steered, key.steered) else saw.steered),
            mistakes={
                "steers_once": lambda saw, key: same([saw.steered, saw.again], [key.steered, key.plain]),
                "adds_up": Gives(lambda key: key.steered),
                "only_training": lambda saw, key: key.case.mode == "eval" and same(saw.steered, key.plain),
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
            want=lambda key: torch.ones(key.made.shape) @ key.case.second @ key.case.first,
            points=1,
            given=_GIVEN + "; fc2(fc1(x)).sum().backward()",
            label="x.grad",
            mistakes={"cuts_gradient": lambda saw, key: saw.x_grad is None or not saw.x_grad.any()},
        ),
        handle_works(_CALL, silent=lambda saw, key: same(saw.after, key.plain)),
    ],
    raises={"returns_tuple": r"must be Tensor, not (tuple|list)"} | CALLS_NOW | WRONG_ARGUMENTS,
)
