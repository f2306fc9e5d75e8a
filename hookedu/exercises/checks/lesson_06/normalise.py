"""What decides about 06.2, `normalise(layer, mean, std)`."""

import torch

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.criteria import Check, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_06.normalise import PROBE, Case
from hookedu.exercises.tools import same


def _others(case: Case) -> list[torch.Tensor | None]:
    return [*case.rest, *case.named.values()]


def _call(saw: Saw, case: Case) -> str:
    named = [f"{name}={show(value)}" for name, value in case.named.items()]
    return f"normalise(layer, {show(case.mean)}, {show(case.std)}); layer({', '.join([*map(show, (case.x, *case.rest)), *named])})"


def _want(case: Case) -> torch.Tensor:
    return (case.x - case.mean) / case.std


def _is_another_formula(saw: Saw, case: Case) -> bool:
    """Check whether mean and std were used in another order or with the wrong operation."""
    x, m, d = case.x, case.mean, case.std
    wrong = (x / d - m, x - m / d, (x - m) * d, (m - x) / d, (x - d) / m, (x + m) / d)
    return any(same(saw.received[0], result) for result in wrong)


def _own_mean(saw: Saw, case: Case) -> bool:
    """Check whether the batch's own mean was subtracted; the std of a batch of 1 is nan."""
    first = saw.received[0]
    return first.shape == case.x.shape and not first.mean().abs() > 1e-4


EXERCISE = Exercise(
    PROBE,
    given=_call,
    checks=[
        Check(
            "intact",
            "x",
            lambda case: case.x,
            essential=True,
            expected=Say("same_x"),
            mistakes={"in_place": True},
        ),
        Check(
            "receives",
            "received",
            want=_want,
            ok=lambda saw, case: (
                same([saw.received[0], saw.again], [_want(case)] * 2)
                and len(saw.received) == 1 + len(_others(case))
                and not any(isinstance(value, list) for value in saw.received)
            ),
            points=1,
            essential=True,
            expected=Say("receives", all=lambda saw, case: show([_want(case), *_others(case)])[1:-1]),
            got=[
                Say(
                    "receives_later",
                    when=lambda saw, case: same(saw.received, [_want(case), *_others(case)]),
                    first=lambda saw, case: show(saw.again),
                ),
                Say("receives", all=lambda saw, case: show(saw.received)[1:-1]),
            ],
            mistakes={
                "not_registered": lambda saw, case: saw.hooks == 0,
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "too_late": lambda saw, case: saw.after and same(saw.received[0], case.x),
                "forgets_return": lambda saw, case: same(saw.received[0], case.x),
                "missing_star": lambda saw, case: isinstance(saw.received[1], list),
                "drops_the_rest": lambda saw, case: (
                    len(saw.received) <= len(_others(case)) or isinstance(saw.received[0], list)
                ),
                "wrong_formula": _is_another_formula,
                "own_statistics": _own_mean,
            },
        ),
        Check(
            "rest",
            ok=lambda saw, case: all(saw.same),
            points=1,
            expected=Say("same_gate"),
            got=Say("receives", all=lambda saw, case: show(saw.received)[1:-1]),
            mistakes={
                "changes_the_rest": lambda saw, case: not same(saw.received[1:], _others(case)),
                "copies": True,
            },
        ),
        equals(
            "gradient",
            lambda case: torch.ones_like(case.x) / case.std,
            {"cuts_gradient": lambda saw, case: saw.gradient is None},
            given=lambda saw, case: f"x = {show(case.x)}; {_call(saw, case)}",
            expected=Say("gradient"),
        ),
        handle_works("normalise(layer, mean, std)", silent=lambda saw, case: saw.after_removal),
    ],
    raises={
        "tuple_for_tensor": r"unsupported operand type\(s\) for [-+*/]+=?: '(tuple|Tensor)' and '(tuple|Tensor)'|must be Tensor, not tuple",
        "calls_layer": r"^RecursionError",
    }
    | MISREGISTERED,
)
