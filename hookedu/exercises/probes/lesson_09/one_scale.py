"""What is observed of 09.2, `one_scale(maps, columns)`: the picture of a layer, of a faint one, of one in a single colour."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies

CLOSE = 1000.0  # numbers just above it differ by less than isclose() sees
# Multiples of it differ by less than any small number that people add to a divisor, or clamp it to.
TINY = 2.0**-60


class Case(NamedTuple):
    """Maps, the number of columns, and the maps of a second layer, all of one number."""

    maps: torch.Tensor
    columns: int
    constant: torch.Tensor


def _case(rng: Draw) -> Case:
    """Return distinct numbers: of both signs; all negative; all close together; a single map, of one number in the second layer.

    But for the single map, the last row is not full: what is empty may not count when the scale is looked for.
    The negative ones are cut out of wider maps, which view() refuses. Those that are close together have a range of 19
    steps, no power of 2: products are rounded, which shows where an answer scales before it subtracts.
    """
    shape = torch.Size(((5, 2, 3), (4, 3, 2), (3, 2, 2), (1, 2, 3))[rng.turn])
    columns = (rng.choice((2, 3)), 3, 2, 1)[rng.turn]
    low, high = ((-60, -1), (1, 20))[rng.turn - 1] if rng.turn in (1, 2) else (-60, 40)
    while True:
        maps = torch.tensor(rng.sample(range(low, high + 1), shape.numel()), dtype=torch.float32).reshape(
            shape
        )
        # Else max() and abs().max() would be equal.
        if (
            (maps.max() - maps.min() == 19)
            if rng.turn == 2
            else rng.turn == 1 or 0 < maps.max() < -maps.min()
        ):
            cut = torch.nn.functional.pad(maps, (0, 1))[..., :-1]
            maps = (maps, cut, CLOSE + maps / 2048, maps)[rng.turn]
            constant = maps if rng.turn != 3 else maps[:, :1, :1]
            return Case(maps, columns, torch.full_like(constant, (-7.0, 0.0, 5.0, 1.0)[rng.turn]))


def observe(one_scale: Any, case: Case) -> dict[str, Any]:
    """Draw the maps, the same as multiples of a tiny number, then as many in which all numbers are equal."""
    maps, columns, constant = case
    return {
        "result": copies(one_scale(maps, columns)),
        "maps": maps,
        "tiny": copies(one_scale(maps * TINY, columns)),
        "constant": copies(one_scale(constant.clone(), columns)),
    }


PROBE = Probe("09.2", "one_scale", _case, observe, cases=4)
