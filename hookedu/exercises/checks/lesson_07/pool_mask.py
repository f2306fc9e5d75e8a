"""What decides about 07.2, `pool_mask(features, size)`."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from hookedu.exercises.checks.lesson_07.shared import all_differ, reads
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_07.pool_mask import PROBE, Case
from hookedu.exercises.tools import same


def _largest(features: torch.Tensor, size: int, stride: int | None = None) -> torch.Tensor:
    """Mark one largest value in each window of each map."""
    index = F.max_pool2d(features, size, stride, return_indices=True)[1].flatten(2)
    return torch.zeros_like(features, dtype=torch.bool).flatten(2).scatter(2, index, True).view_as(features)


def _readings(features: torch.Tensor, size: int) -> dict[str, torch.Tensor]:
    """Return the masks of those readings of the task that agree on some maps of distinct values."""
    windows = _largest(features, size)
    highest = F.max_pool2d(features, size).amax(1, keepdim=True)
    first = torch.arange(features.shape[1])[:, None, None] == 0
    return {
        "windows": windows,
        "windows after ReLU": _largest(features.relu(), size),
        "windows of step 1": _largest(features, size, stride=1),
        "windows through all maps": features == highest.repeat_interleave(size, 2).repeat_interleave(size, 3),
        "windows and all maps": windows & (features == features.amax(1, keepdim=True)),
        "windows of map 0": windows & first,
        "windows counted in map 0": windows.any(1, keepdim=True) & first,
    }


def _key(case: Case) -> SimpleNamespace:
    """Return the masks by name, the size and the maps, and the masks that the distinct values x may get."""
    size, maps = case
    x, masks = maps["distinct"], {name: _largest(features, size) for name, features in maps.items()}
    return SimpleNamespace(**masks, size=size, maps=maps, x=x, readings=_readings(x, size))


def _lines(name: str, saw: Any, key: SimpleNamespace) -> tuple[str, str, str]:
    """Return the lines given, expected and got: the first map that is marked wrong, else the very first."""
    got, mask = getattr(saw, name), getattr(key, name)
    fits = isinstance(got, torch.Tensor) and got.shape == mask.shape
    wrong = (got != mask).flatten(2).any(2).nonzero().tolist() if fits else []
    at = wrong[0] if wrong else [0, 0]
    features, want = (show(t[tuple(at)]) for t in (key.maps[name], mask))
    shown = f"mask{at} = {show(got[tuple(at)])}" if fits else show_kind(got)
    return f"features{at} = {features}, size = {key.size}", f"mask{at} = {want}", shown


def _marks(id: str, name: str, points: int, mistakes: Any, **others: Any) -> Check:
    """Require the right mask for the maps of this name. Mistakes are recognised by masks of any dtype."""
    return Check(
        id,
        name,
        ok=lambda saw, key: same(getattr(saw, name), getattr(key, name)),
        points=points,
        given=lambda saw, key: _lines(name, saw, key)[0],
        expected=lambda saw, key: _lines(name, saw, key)[1],
        got=lambda saw, key: _lines(name, saw, key)[2],
        equal=lambda got, mask: same(got.bool(), mask),
        mistakes=mistakes,
        **others,
    )


_OF_DISTINCT = {
    "pooled_shape": lambda saw, key: saw.distinct.shape == (1, 2, 2, 2),
    "not_bool": reads("windows"),
    "per_channel": Gives(lambda key: key.x == key.x.amax((2, 3), True), lambda key: key.x == key.x.max()),
    "across_channels": reads("windows through all maps", "windows and all maps"),
    "only_positive": Gives(lambda key: key.x > 0, lambda key: key.x != 0),
    "inverted": Gives(lambda key: ~key.distinct),
    "relu_first": reads("windows after ReLU"),
    "one_count": reads("windows counted in map 0"),
    "stride_one": reads("windows of step 1"),
    "first_map_only": reads("windows of map 0"),
}
_OF_TIED = {"marks_ties": lambda saw, key: same(saw.tied, key.maps["tied"] > 0), "other_tie": True}

EXERCISE = Exercise(
    PROBE,
    key=_key,
    # Else the mask would not tell the reading.
    suits=lambda case: all_differ(_readings(case[1]["distinct"], case[0]).values()),
    checks=[
        _marks("routes", "distinct", 2, _OF_DISTINCT, essential=True),
        _marks("ties", "tied", 1, _OF_TIED),
        _marks("border", "bordered", 1, {"border": True}),
    ],
)
