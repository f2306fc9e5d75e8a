"""What decides about 09.4, `dead_channels(model, relu, batches)`."""

from collections.abc import Callable
from itertools import chain

import torch

from hookedu.exercises.checks.common import equals
from hookedu.exercises.checks.lesson_09.shared import Mistakes, returned, same_list
from hookedu.exercises.criteria import Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import is_tuple
from hookedu.exercises.probes.lesson_09.dead_channels import PROBE, ROLES, WEAK, Case, in_turns
from hookedu.exercises.tools import same


def _silent(*pictures: torch.Tensor, threshold: float = 0.0) -> list[int]:
    """Return the channels of (..., channel, height, width) that are nowhere above the threshold."""
    channels = torch.cat([maps.movedim(-3, 0).flatten(1) for maps in pictures], 1)
    return (channels <= threshold).all(1).nonzero().flatten().tolist()


def _dead(case: Case) -> list[int]:
    return _silent(*case.maps)


def _calls(case: Case) -> list[list[torch.Tensor]]:
    """Return what goes into each call of the ReLU, by batch."""
    return [in_turns(batch, case.calls) for batch in case.maps]


def _channels(role: str) -> Of:
    return lambda saw, case: [channel for channel, its in enumerate(case.roles) if its == role]


def _overwritten(case: Case) -> list[int]:
    """Return the channels that are still 0 after the in-place operation that follows."""
    return [channel for channel in _dead(case) if channel != case.woken]


def _all(case: Case) -> list[int]:
    return list(range(len(case.roles)))


def _not_positive(case: Case) -> list[int]:
    """Return the channels that are not above 0 everywhere."""
    return [c for c in _all(case) if min(float(batch[:, c].min()) for batch in case.maps) <= 0]


_ONE_PICTURE: tuple[Callable[[Case], list[int]], ...] = (
    lambda case: _silent(_calls(case)[0][0][0]),
    lambda case: _silent(*(batch[0] for batch in case.maps)),
)
_MISTAKES: Mistakes = {
    "returns_mask": lambda saw, case: [type(v) for v in saw.result] == [bool] * len(case.roles),
    "squeezes": lambda saw, case: [saw.result] == _dead(case),
    "counts": lambda saw, case: type(saw.result) is int or saw.result.dim() == 0,
    "overwritten": Gives(_overwritten),
    "none_found": Gives(lambda case: []),
    "one_call_only": Gives(
        lambda case: _silent(*(calls[-1] for calls in _calls(case))),
        lambda case: _silent(*(calls[0] for calls in _calls(case))),
    ),
    "last_batch_only": Gives(lambda case: _silent(case.maps[-1]), lambda case: _silent(_calls(case)[-1][-1])),
    "first_batch_only": Gives(lambda case: _silent(case.maps[0]), lambda case: _silent(_calls(case)[0][0])),
    "one_picture_only": Gives(*_ONE_PICTURE),
    "quiet_somewhere": Gives(
        lambda case: sorted({c for batch in case.maps for picture in batch for c in _silent(picture)}),
        lambda case: sorted({c for one in chain(*_calls(case)) for picture in one for c in _silent(picture)}),
    ),
    "threshold": Gives(lambda case: _silent(*case.maps, threshold=WEAK)),
    "smallest": Gives(_not_positive),
    "part_of_the_map": lambda saw, case: (
        case.maps[0].shape[-1] > 2
        and same(saw.result, _silent(*(maps[..., 1:-1, 1:-1] for maps in case.maps)))
    ),
    "inverted": Gives(lambda case: [c for c in _all(case) if c not in _dead(case)]),
    "not_sorted": lambda saw, case: not is_tuple(saw.result) and same(sorted(saw.result), _dead(case)),
}


def _awake_in_each_call(case: Case) -> bool:
    """Check whether each call of the ReLU has a channel that no picture leaves silent."""
    return case.calls == 1 or (case.roles.index("weak") - case.roles.index("strong")) % case.calls != 0


_SHOWN: dict[str, Of] = {
    "sizes": lambda saw, case: [len(batch) for batch in case.maps],
    **{role: _channels(role) for role in ("silent", *ROLES)},
}

EXERCISE = Exercise(
    PROBE,
    suits=_awake_in_each_call,
    given=[
        Say("channels_wider", when=lambda saw, case: case.calls == 2, **_SHOWN),
        Say("channels", **_SHOWN),
    ],
    checks=[
        returned("finds", _dead, points=5, mistakes=_MISTAKES, equal=same_list),
        equals(
            "runs",
            lambda case: len(case.maps),
            {"calls_forward": lambda saw, case: saw.runs < saw.forwards, "once_each": True},
            words="model_runs",
            given="dead_channels(model, relu, batches)",
        ),
    ],
)
