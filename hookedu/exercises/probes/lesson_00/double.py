"""What is observed of 00.1, `double(grad)`."""

import math

import torch

from hookedu.exercises.probing import Draw, Probe, call
from hookedu.exercises.tools import whole

_SHAPES = ((3,), (1,), (2, 3), (1, 2, 1, 2))


def make_case(rng: Draw) -> tuple[torch.Tensor]:
    """Return a gradient: three whole numbers, then fractions, some negative, in another shape and order of storage."""
    shape = _SHAPES[rng.turn]
    values = whole(rng, math.prod(shape))
    if rng.turn:
        values = values / 4
        values[0] = -values[0].abs()
    grad = values.reshape(shape)
    return (grad if grad.ndim < 2 else grad.mT,)


PROBE = Probe("00.1", "double", make_case, call, cases=len(_SHAPES))
