"""A small graph for the probes of lesson 02."""

import random
from typing import NamedTuple

import torch

from hookedu.exercises.tools import whole


class Case(NamedTuple):
    """Values for y = k * x and loss = (w * y).sum(): the gradient of y is w, that of x is k * w."""

    x: torch.Tensor
    k: float
    w: torch.Tensor


def make_case(rng: random.Random) -> Case:
    """Return a case of two to four elements."""
    n = rng.randint(2, 4)
    return Case(whole(rng, n).requires_grad_(), float(rng.randint(2, 5)), whole(rng, n))
