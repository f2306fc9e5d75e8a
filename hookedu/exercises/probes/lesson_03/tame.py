"""What is observed of 03.4, `tame(branch)`: backward with both hooks, with each one alone, and with none."""

import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_03.shared import Paths
from hookedu.exercises.probing import Probe


def make_case(rng: random.Random) -> Paths:
    """Return paths whose gradient w has two positive and two negative numbers."""
    signs = [1.0, 1.0, -1.0, -1.0]
    rng.shuffle(signs)
    size = torch.tensor([float(v) for v in rng.sample(range(2, 10), 4)])
    return Paths.make(rng, 4)._replace(w=size * torch.tensor(signs))


def observe(tame: Any, paths: Paths) -> dict[str, Any]:
    """Run backward four times; `x_alone` and `s_alone` hold the gradients with only the first, then the second hook."""
    both = paths.observe(tame)
    first, second, none = (paths.observe(tame, off) for off in (slice(1, 2), slice(1), slice(2)))
    return both | {
        "x_alone": [first["x_grad"], second["x_grad"]],
        "s_alone": [first["s_grad"], second["s_grad"]],
        "none": [none["x_grad"], none["s_grad"]],
    }


PROBE = Probe("03.4", "tame", make_case, observe)
