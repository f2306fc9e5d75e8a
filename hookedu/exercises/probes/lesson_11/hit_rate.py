"""What is observed of 11.3, `hit_rate(cams, boxes)`, with batches of maps that are wider than high."""

import random
from typing import Any

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, same

N, H, W = 200, 6, 10

Batch = tuple[torch.Tensor, torch.Tensor]  # (cams, boxes)


def _batch(rng: random.Random) -> Batch:
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    cams = 0.9 * torch.rand(N, H, W, generator=generator)
    x, y = (torch.randint(size, (N,), generator=generator) for size in (W, H))
    cams[torch.arange(N), y, x] = 0.9 + 0.1 * torch.rand(N, generator=generator)
    peak = torch.stack([x, y], dim=1)
    # Half of the boxes have the peak inside, on an edge or just outside; the others are anywhere.
    start = peak - torch.randint(-1, 5, (N, 2), generator=generator)
    start[::2] = torch.randint(0, W, (N // 2, 2), generator=generator)
    start = start.clamp(torch.tensor(0), torch.tensor([W - 4, H - 3]))
    return cams, torch.cat([start, start + torch.tensor([4, 3])], dim=1)


def _case(rng: random.Random) -> list[Batch]:
    """Return so many batches that different ways to read maps and boxes do not agree on all of them by chance."""
    return [_batch(rng) for _ in range(5)]


def _observe(hit_rate: Any, batches: list[Batch]) -> dict[str, Any]:
    given = copies(batches)
    results = [copies(hit_rate(cams, boxes)) for cams, boxes in given]
    return {"results": results, "untouched": same(given, batches)}


PROBE = Probe("11.3", "hit_rate", _case, _observe)
