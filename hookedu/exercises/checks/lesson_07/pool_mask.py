"""What decides about 07.2, `pool_mask(features, size)`."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from hookedu.exercises.checks.lesson_07.shared import all_differ, reads, said
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_07.pool_mask import PROBE, Case
from hookedu.exercises.tools import same


def _largest(features: torch.Tensor, size: int, stride: int | None = None) -> torch.Tensor:
    """Mark one largest value in each window of each map."""
    index = F.max_pool2d(features, size, stride, return_indices=True)[1].flatten(2)
    return torch.zeros_like(features, dtype=torch.bool).flatten(2).scatter(2, index, True).view_as(features)


def _spread(pooled: torch.Tensor, features: torch.Tensor, size: int) -> torch.Tensor:
    """Return for each position the pooled value of its window."""
    height, width = features.shape[2:]
    return pooled.repeat_interleave(size, 2).repeat_interleave(size, 3)[..., :height, :width]


def _readings(features: torch.Tensor, size: int) -> dict[str, torch.Tensor]:
    """Return the masks of those readings of the task that agree on some maps of distinct values."""
    windows, sizes = _largest(features, size), features.abs()
    highest = F.max_pool2d(features, size).amax(1, keepdim=True)
    sample = torch.arange(2)[:, None, None, None] == 0
    channel = torch.arange(3)[:, None, None] == 0
    return {
        "windows": windows,
        "windows after ReLU": _largest(features.relu(), size),
        "windows of step 1": _largest(features, size, stride=1),
        "windows of sizes": _largest(sizes, size),
        "windows of positive sizes": features == _spread(F.max_pool2d(sizes, size), features, size),
        "smallest of windows": _largest(-features, size),
        "windows through all maps": features == _spread(highest, features, size),
        "windows and all maps": windows & (features == features.amax(1, keepdim=True)),
        "windows of sample 0": windows & sample,
        "windows of channel 0": windows & channel,
        "windows of map 0": windows & sample & channel,
        "sample 0 for all": windows[:1].expand_as(windows),
        "channel 0 for all": windows[:, :1].expand_as(windows),
        "windows counted in map 0": windows.any(1, True).any(0, True) & sample & channel,
        "windows counted in channel 0": windows.any(1, True) & channel,
        "windows but 0": windows & (features != 0),
        "windows but 1": windows & (features != 1),
    }


def _key(case: Case) -> SimpleNamespace:
    """Return the masks by name, the size and the maps, and the masks that the distinct values x may get."""
    size, maps = case
    x, masks = maps["distinct"], {name: _largest(features, size) for name, features in maps.items()}
    ties = maps["tied"] == _spread(F.max_pool2d(maps["tied"], size), maps["tied"], size)
    rounded = [_largest(whole, size) for whole in (x.round(), x.trunc(), x.long().double())]
    readings = _readings(x, size)
    return SimpleNamespace(**masks, size=size, maps=maps, x=x, ties=ties, rounded=rounded, readings=readings)


def _one_of_ties(saw: Any, key: SimpleNamespace) -> bool:
    """Check whether one of the largest in each window is marked, and nothing else."""
    counts = F.avg_pool2d(saw.tied.float(), key.size, divisor_override=1)
    return bool((counts == 1).all()) and not (saw.tied & ~key.ties).any()


def _lines(name: str, saw: Any, key: SimpleNamespace) -> tuple[str, str, str]:
    """Return the lines given, expected and got: the first map that is marked wrong, else the very first."""
    got, mask = getattr(saw, name), getattr(key, name)
    fits = isinstance(got, torch.Tensor) and got.shape == mask.shape
    wrong = (got != mask).flatten(2).any(2).nonzero().tolist() if fits else []
    at = wrong[0] if wrong else [0, 0]
    features, want = (show(t[tuple(at)]) for t in (key.maps[name], mask))
    shown = f"mask{at} = {show(got[tuple(at)])}" if fits else show_kind(got)
    more = ", float64" * (key.maps[name].dtype == torch.float64)
    more += ", features.is_contiguous() == False" * (not key.maps[name].is_contiguous())
    more += ", features.grad == torch.ones_like(features)" * (key.maps[name].grad is not None)
    return f"features{at} = {features}, size = {key.size}{more}", f"mask{at} = {want}", shown


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
    "pooled_shape": lambda saw, key: saw.distinct.shape[2:] in ((2, 3), (3, 2)),
    "not_bool": reads("windows"),
    "per_channel": Gives(lambda key: key.x == key.x.amax((2, 3), True), lambda key: key.x == key.x.max()),
    "across_channels": reads("windows through all maps", "windows and all maps"),
    "only_positive": Gives(lambda key: key.x > 0, lambda key: key.x != 0),
    "inverted": Gives(lambda key: ~key.distinct),
    "relu_first": reads("windows after ReLU"),
    "drops_signs": reads("windows of sizes", "windows of positive sizes"),
    "smallest": reads("smallest of windows"),
    "rounded": Gives(*(lambda key, n=n: key.rounded[n] for n in range(3))),
    "old_gradient": lambda saw, key: key.x.grad is not None and saw.distinct.all(),
    "flat_loss": reads("windows but 0", "windows but 1"),
    "one_count": reads("windows counted in map 0", "windows counted in channel 0"),
    "stride_one": reads("windows of step 1"),
    "first_map_only": reads("windows of map 0", "windows of channel 0", "windows of sample 0"),
    "first_for_all": reads("channel 0 for all", "sample 0 for all"),
    "no_return": lambda saw, key: saw.distinct is None,
}
_OF_TIED = {"marks_ties": lambda saw, key: same(saw.tied, key.ties), "other_tie": _one_of_ties}

# These maps are also the only ones with a batch and a channel of one.
_NO_BATCH = said("bordered", "3D or 4D", "not enough values to unpack")


def _loses_dims(saw: Any) -> bool:
    return isinstance(saw.bordered, torch.Tensor) and saw.bordered.dim() != 4


EXERCISE = Exercise(
    PROBE,
    key=_key,
    # Else the mask would not tell the reading.
    suits=lambda case: all_differ(_readings(case[1]["distinct"], case[0]).values()),
    checks=[
        _marks("routes", "distinct", 2, _OF_DISTINCT, essential=True),
        _marks("ties", "tied", 1, _OF_TIED),
        _marks(
            "border",
            "bordered",
            1,
            {"border": lambda saw, key: not (_NO_BATCH(saw, key) or _loses_dims(saw))},
        ),
    ],
)
