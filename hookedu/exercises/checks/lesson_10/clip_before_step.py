"""What decides about 10.5, `clip_before_step(optimizer, max_norm)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.clip_before_step import PROBE, Case
from hookedu.exercises.tools import close


def _clipped(case: Case, *groups: str) -> list[torch.Tensor]:
    """Return the gradients of a, b and c as `clip_grad_norm_` leaves them, called on each of the groups."""
    grads = dict(zip("abc", case.grads, strict=True))
    for group in groups:
        total = torch.cat([grads[name] for name in group]).norm()
        grads |= {name: grads[name] * (case.max_norm / total).clamp(max=1) for name in group}
    return list(grads.values())


def _divided(case: Case, total: Any) -> list[torch.Tensor]:
    """Return the gradients times max_norm / total, whatever their norm."""
    return [grad * case.max_norm / total for grad in case.grads]


def _near(got: Any, expected: list[torch.Tensor]) -> bool:
    return isinstance(got, list) and len(got) == len(expected) and all(map(close, got, expected))


# How far the parameters move with likely mistakes.
_MOVES = {
    "not_registered": lambda case: case.grads,
    "each_by_its_own": lambda case: _clipped(case, "a", "b", "c"),
    "each_group": lambda case: _clipped(case, "a", "bc"),
    "first_group_only": lambda case: _clipped(case, "a"),
    "clamps_elements": lambda case: [grad.clamp(-case.max_norm, case.max_norm) for grad in case.grads],
    "sum_of_norms": lambda case: _divided(case, sum(grad.norm() for grad in case.grads)),
    "unit_norm": lambda case: _divided(case, case.max_norm * torch.cat(case.grads).norm()),
    "norm_of_the_parameters": lambda case: _divided(case, torch.cat([*case.values, torch.ones(2)]).norm()),
}

EXERCISE = Exercise(
    PROBE,
    given="grads = {case.grads}; max_norm = {case.max_norm:g}; optimizer.step(); lr = 1",
    checks=[
        Check(
            "clips",
            "moved",
            want=lambda case: _clipped(case, "abc"),
            equal=_near,
            points=3,
            essential=True,
            expected=Say("wanted"),
            got=Say("moved"),
            mistakes={
                "too_late": lambda saw, case: _near(saw.kept, _clipped(case, "abc")),
                "nothing_changed": lambda saw, case: (
                    _near(saw.moved, case.grads) and (saw.hooks or saw.on_params or saw.removed)
                ),
                **{mistake: Gives(move) for mistake, move in _MOVES.items()},
                "in_backward": lambda saw, case: saw.on_params,
            },
        ),
        Check(
            "leaves",
            "short",
            want=lambda case: [grad / 100 for grad in case.grads],
            equal=_near,
            points=1,
            given="grads = {want}; max_norm = {case.max_norm:g}; optimizer.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_short"),
            mistakes={"always_scales": True},
        ),
        handle_works("clip_before_step(optimizer, max_norm)", lambda saw, case: _near(saw.after, case.grads)),
    ],
    raises={
        "none_grad": r"'NoneType' object has no attribute|unsupported operand.*NoneType|expected Tensor.*NoneType",
        "returns_value": r"must return None or a tuple of \(new_args, new_kwargs\)",
        "three_arguments": r"positional arguments? but \d (?:was|were) given|missing \d required positional",
    },
)
