"""What is observed of 07.2, `pool_mask(features, size)`: masks of distinct and of equal values, and of a row too many."""

import random
from typing import Any

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies

Case = tuple[int, dict[str, torch.Tensor]]


def make_case(rng: random.Random) -> Case:
    """Return the size of the windows, and maps: of distinct values, of one value, and with a row too many."""
    size = rng.choice([2, 3])
    side = 2 * size
    distinct = _numbers(rng, 1, 2, side, side)
    distinct[0, 0, :size, :size] -= 120  # a window of negative values has a maximum too
    tied, bordered = torch.full_like(distinct, rng.randint(2, 9)), _numbers(rng, 1, 1, side + 1, side)
    bordered[..., -1, 0] = 99.0  # the largest value is outside of all windows
    return size, {"distinct": distinct, "tied": tied, "bordered": bordered}


def _numbers(rng: random.Random, *shape: int) -> torch.Tensor:
    numbers = rng.sample(range(-60, 60), torch.Size(shape).numel())
    return torch.tensor(numbers, dtype=torch.float32).reshape(shape)


def observe(pool_mask: Any, case: Case) -> dict[str, Any]:
    """Call it with each of the maps; with a row too many it may raise."""
    size, maps = case
    found = {name: copies(pool_mask(maps[name], size)) for name in ("distinct", "tied")}
    try:
        return found | {"bordered": copies(pool_mask(maps["bordered"], size))}
    except (RuntimeError, IndexError, ValueError) as error:  # all that sizes which do not fit may raise
        return found | {"bordered": f"{type(error).__name__}: {error}"[:120]}


PROBE = Probe("07.2", "pool_mask", make_case, observe)
