"""What is observed of 09.2, `one_scale(maps, columns)`: the picture of a layer, and of one whose numbers are equal."""

import random
from typing import Any

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies

SHAPE = (5, 2, 3)


def _case(rng: random.Random) -> tuple[torch.Tensor, int]:
    """Return (maps, columns): distinct whole numbers of both signs; the last row of tiles is not full."""
    while True:
        numbers = torch.tensor(rng.sample(range(-60, 41), torch.Size(SHAPE).numel()), dtype=torch.float32)
        if 0 < numbers.max() < -numbers.min():  # else max() and abs().max() would be equal
            return numbers.reshape(SHAPE), rng.choice((2, 3))


def observe(one_scale: Any, case: tuple[torch.Tensor, int]) -> dict[str, Any]:
    """Draw the maps, then as many in which all numbers are equal."""
    maps, columns = case[0].clone(), case[1]
    constant = torch.full(SHAPE, maps[0, 0, 0].item())
    return {
        "result": copies(one_scale(maps, columns)),
        "maps": maps,
        "constant": copies(one_scale(constant, columns)),
    }


PROBE = Probe("09.2", "one_scale", _case, observe)
