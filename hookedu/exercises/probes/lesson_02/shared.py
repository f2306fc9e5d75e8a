"""A small graph for the probes of lesson 02."""

import math
from typing import NamedTuple

import torch

from hookedu.exercises.probing import Draw
from hookedu.exercises.tools import whole


class Case(NamedTuple):
    """Values for y = k * x and loss = (w * y).sum(): the gradient of y is w, that of x is k * w."""

    x: torch.Tensor
    k: float
    w: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case of two to four whole numbers; then fractions, one of them infinite, in other shapes."""
    shape = ((rng.randint(2, 4),), (), (2, 2), (1, 3, 1))[rng.turn]
    x, w = (whole(rng, math.prod(shape)) for _ in range(2))
    w[0] = -w[0].abs()
    if rng.turn:
        w /= 4
        w[1:2] = torch.inf
    return Case(x.reshape(shape).requires_grad_(), float(rng.randint(2, 5)), w.reshape(shape))
