"""What decides about 09.4, `dead_channels(model, relu, batches)`."""

import torch

from hookedu.exercises.checks.lesson_09.shared import Mistakes, no_traces, returned
from hookedu.exercises.criteria import Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_09.dead_channels import PROBE, ROLES


def _silent(x: torch.Tensor, threshold: float = 0.0) -> list[int]:
    """Return the channels of (..., channel, 2, 2) that are nowhere above the threshold."""
    return (x.movedim(-3, 0).flatten(1) <= threshold).all(1).nonzero().flatten().tolist()


def _channels(role: str) -> Of:
    return lambda saw, case: [channel for channel, its in enumerate(case.roles) if its == role]


_MISTAKES: Mistakes = {
    "returns_mask": lambda saw, case: [type(v) for v in saw.result] == [bool] * len(ROLES),
    "counts": lambda saw, case: type(saw.result) is int or saw.result.dim() == 0,
    "overwritten": Gives(lambda case: []),
    "last_batch_only": Gives(lambda case: _silent(case.x[-1])),
    "first_batch_only": Gives(lambda case: _silent(case.x[0])),
    "one_picture_only": Gives(lambda case: _silent(case.x[0, 0]), lambda case: _silent(case.x[:, 0])),
    "quiet_somewhere": Gives(lambda case: sorted({c for one in case.x.flatten(0, 1) for c in _silent(one)})),
    "threshold": Gives(lambda case: _silent(case.x, 1e-3)),
    "smallest": Gives(lambda case: list(range(len(ROLES)))),
    "inverted": Gives(lambda case: [c for c in range(len(ROLES)) if c not in _silent(case.x)]),
}

EXERCISE = Exercise(
    PROBE,
    given=Say("channels", **{role: _channels(role) for role in ROLES}),
    checks=[
        returned("finds", lambda case: _silent(case.x), points=3, mistakes=_MISTAKES),
        *no_traces("dead_channels(model, relu, batches)"),
    ],
)
