"""What decides about 06.2, `normalise(layer, mean, std)`."""

import torch

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.criteria import Check, Gives, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_06.normalise import PROBE, Case
from hookedu.exercises.tools import same


def _wrong_formula(saw: Saw, case: Case) -> bool:
    """Check whether mean and std were used in another order or with the wrong operation."""
    x, _, m, d = case
    wrong = (x / d - m, x - m / d, (x - m) * d, (m - x) / d, (x - d) / m, (x + m) / d)
    return any(same(saw.first, result) for result in wrong)


def _own_mean(saw: Saw, case: Case) -> bool:
    """Check whether the batch's own mean was subtracted: by column, by row or over all values."""
    means = (saw.first.mean(0), saw.first.mean(1), saw.first.mean())
    return saw.first.shape == case.x.shape and any(mean.abs().max() < 1e-4 for mean in means)


EXERCISE = Exercise(
    PROBE,
    given="normalise(layer, {case.mean}, {case.std}); layer({case.x}, {case.gate})",
    checks=[
        Check(
            "intact",
            "x",
            lambda case: case.x,
            essential=True,
            expected=Say("same_x"),
            mistakes={"in_place": True},
        ),
        equals(
            "receives",
            observed="first",
            want=lambda case: (case.x - case.mean) / case.std,
            mistakes={
                "not_registered": lambda saw, case: saw.hooks == 0,
                "forgets_return": lambda saw, case: same(saw.output, case.x * case.gate),
                "too_late": Gives(lambda case: case.x),
                "wrong_formula": _wrong_formula,
                "own_statistics": _own_mean,
            },
            essential=True,
            expected=Say("receives"),
        ),
        equals(
            "rest",
            lambda case: case.gate,
            {"changes_the_rest": True},
            observed="second",
            expected=Say("same_gate"),
        ),
        equals(
            "gradient",
            lambda case: torch.ones_like(case.x) / case.std,
            {"cuts_gradient": True},
            given="x = {case.x}; normalise(layer, {case.mean}, {case.std})",
            expected=Say("gradient"),
        ),
        handle_works("normalise(layer, mean, std)", silent=lambda saw, case: saw.after_removal),
    ],
    raises={
        "drops_the_rest": r"missing 1 required positional argument: 'gate'",
        "tuple_for_tensor": r"unsupported operand type\(s\) for [-+*/]+=?: '(tuple|Tensor)' and '(tuple|Tensor)'|must be Tensor, not tuple",
        "calls_layer": r"^RecursionError",
    }
    | MISREGISTERED,
)
