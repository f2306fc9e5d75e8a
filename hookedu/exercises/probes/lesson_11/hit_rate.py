"""What is observed of 11.3, `hit_rate(cams, boxes)`, on batches of maps that are not square."""

import random
from typing import Any

import numpy as np
import torch

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies

SIDES = (6, 10)

Point = tuple[int, int]
Batch = tuple[torch.Tensor, torch.Tensor]  # (cams, boxes)


def _around(rng: random.Random, where: str, width: int, height: int) -> tuple[list[Point], list[int]]:
    """Return (highest points, box) for a box of 3×2, with the points at this place of it."""
    x0, y0 = rng.randint(1, width - 5), 0 if where == "top" else rng.randint(1, height - 4)
    x1, y1 = x0 + 3, y0 + 2
    points = {
        "inside": [(x0 + 1, y0 + 1)],
        "left": [(x0, y0 + 1)],
        "top": [(x0 + 1, y0)],
        "right": [(x1, y0 + 1)],
        "below": [(x0 + 1, y1)],
        "far right": [(x1 + 1, y0 + 1)],
        "far below": [(x0 + 1, y1 + 1)],
        "both inside": [(x0, y0), (x1 - 1, y1 - 1)],
        "both outside": [(x0 - 1, y0), (x1, y0)],
        "corners outside": [(x1 + 1, y0), (x0, y1 + 1)],  # its row and another's column make a point inside
        "nearly inside": [(x0 + 1, y0), (x0 + 1, y1 + 1)],
        "barely inside": [(x0 - 1, y0), (x0 + 1, y0 + 1)],
        "anywhere": [(rng.randrange(width), rng.randrange(height))],
    }
    return points[where], [x0, y0, x1, y1]


# Numbers of maps: whichever edges an answer counts differently, or whatever it makes of ties, it gets another sum.
_MAPS = {"inside": 3, "left": 1, "top": 2, "right": 4, "below": 8, "far right": 6, "far below": 3}
_MAPS |= {"both inside": 2, "both outside": 2, "anywhere": 28}
_MAPS |= {"corners outside": 3, "nearly inside": 1, "barely inside": 3}


def _case(rng: Draw) -> Batch:
    """Return maps wider than high and higher than wide by turns, some of negative numbers; at last a single map.

    In turn 1 all numbers are far below 0, as a search may begin at -1. In turn 2 the lowest are, and the sums of some maps, but the highest are the largest.
    One map is the same everywhere, and its box holds all of it. Of the others, one alone holds the lowest point of its map,
    and the highest as well.
    """
    height, width = SIDES if rng.turn % 2 == 0 else SIDES[::-1]
    places = [where for where, n in _MAPS.items() for _ in range(n)] if rng.turn < 4 else ["inside"]
    rng.shuffle(places)
    # First a miss, last a hit or a miss by turns.
    order = {"far right": 0, "inside" if rng.turn in (1, 2, 4) else "far below": 2}
    places.sort(key=lambda where: order.get(where, 1))
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    cams = 0.9 * torch.rand(len(places), height, width, generator=generator) ** 3
    boxes = []
    for n, where in enumerate(places):
        points, box = _around(rng, where, width, height)
        x0, y0, *_ = box
        lowest = (n, y0, x0 + 1) if where == "left" else (n, -1, 0)
        cams[lowest] = 0
        for x, y in points:
            cams[n, y, x] = 0.9 + 0.1 * n / len(places)  # the highest of all is in the last map
        if where in ("nearly inside", "barely inside"):  # lower by less than float16 or `isclose` could tell
            cams[n, points[0][1], points[0][0]] -= 2e-6
        boxes.append(box)
    if rng.turn < 4:
        cams = torch.cat([cams[:1], torch.zeros(1, height, width), cams[1:]])
        boxes.insert(1, [0, 0, width, height])
    lowered = {1: torch.full((1,), 3.0), 2: torch.tensor([0.4, 0.1])}.get(rng.turn, torch.zeros(1))
    return cams - lowered.repeat(len(cams))[: len(cams), None, None], torch.tensor(boxes)


def _observe(hit_rate: Any, batch: Batch) -> dict[str, Any]:
    rate = hit_rate(*batch)
    return {"result": rate.item() if isinstance(rate, np.generic) else copies(rate)}


PROBE = Probe("11.3", "hit_rate", _case, _observe)
