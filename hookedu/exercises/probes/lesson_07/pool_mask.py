"""What is observed of 07.2, `pool_mask(features, size)`: masks of distinct values, of ties, and beside a border."""

import random
from typing import Any

import torch

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import attempted, copies

Case = tuple[int, dict[str, torch.Tensor]]


def make_case(rng: Draw) -> Case:
    """Return the size of the windows, and maps: of distinct values, with ties, and with rows or columns too many.

    After the first case there are fractions, a window whose largest two hardly differ, and an old gradient. In the third
    all is float64, a winner is infinite, after the largest number that is finite, a window of ties holds nothing but -inf, and maps lie in memory column by column.
    """
    size = (2, 3, 2)[rng.turn]
    side, longer = 2 * size, 3 * size
    distinct = _numbers(rng, 2, 3, *((longer, side) if rng.turn == 1 else (side, longer)))
    distinct = distinct.double() if rng.turn == 2 else distinct
    if rng.turn:
        distinct /= 2048
        distinct[1, 0, 0, 0], distinct[1, 0, size - 1, size - 1] = (
            0.75,
            0.75 + 2.0 ** (-40 if rng.turn == 2 else -20),
        )
    # A window of negative values has a maximum too.
    distinct[0, 0, :size, :size] -= 2.0**10 if rng.turn else 2.0**20
    if rng.turn == 2:
        distinct[0, 2, 0, :2] = distinct.new_tensor([torch.finfo(distinct.dtype).max, -torch.inf])
        distinct[0, 2, 1, 0] = torch.inf
    for n, window in enumerate(distinct[1, :, size:, size:]):  # windows whose maxima are 0 and 1
        window -= window.max() - n

    tied = torch.full_like(distinct, rng.randint(2, 9) if rng.turn == 0 else 0)
    if rng.turn == 1:  # by rows another one comes first than by columns
        tied[..., ::size, size - 1 :: size] = tied[..., 1::size, ::size] = 5.0

    if rng.turn == 2:
        tied[0, 1, :size, :size] = -torch.inf
        tied = tied.mT.contiguous().mT

    rows, columns = ((1, 0), (2, 1), (0, 1))[rng.turn]
    bordered = _numbers(rng, 1, 1, side + rows, side + columns)
    bordered[..., side:, 0] = bordered[..., 0, side:] = (
        9999.0  # the largest values are outside of all windows
    )
    maps = {"distinct": distinct, "tied": tied, "bordered": bordered}
    if rng.turn:
        for features in maps.values():
            features.grad = torch.ones_like(features)
    return size, maps


def _numbers(rng: random.Random, *shape: int) -> torch.Tensor:
    numbers = rng.sample(range(-999, 999), torch.Size(shape).numel())
    return torch.tensor(numbers, dtype=torch.float32).reshape(shape)


def observe(pool_mask: Any, case: Case) -> dict[str, Any]:
    """Call it with each of the maps; with rows or columns too many it may raise."""
    size, maps = case

    def ties() -> Any:
        try:
            return pool_mask(maps["tied"], size)
        except RuntimeError as error:
            if "view size is not compatible" not in str(error):
                raise
            return pool_mask(maps["tied"].contiguous(), size)  # PyTorch itself said what a view needs

    found = {"distinct": copies(pool_mask(maps["distinct"], size)), "tied": copies(ties())}
    return found | {"bordered": attempted(lambda: copies(pool_mask(maps["bordered"], size)))}


PROBE = Probe("07.2", "pool_mask", make_case, observe, cases=3)
