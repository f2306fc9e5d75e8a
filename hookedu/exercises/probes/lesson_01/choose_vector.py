"""What is observed of 01.4, `choose_vector(x, y, wanted)`: the vector, and x.grad before and after y.backward(vector)."""

import random
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """Values for y = k * x**power, and the gradient that is wanted."""

    x: torch.Tensor
    k: float
    power: int
    wanted: torch.Tensor


def make_case(rng: random.Random) -> Case:
    """Return a case in which every number of the vector is whole."""
    # Not 3, the length in the lesson's example: a torch.ones(3) copied from there must fail.
    n = rng.choice((2, 4))
    x, k, power = whole(rng, n).requires_grad_(), float(rng.randint(2, 5)), rng.choice((2, 3))
    (wanted,) = torch.autograd.grad(k * x**power, x, whole(rng, n))
    return Case(x, k, power, wanted)


def observe(choose_vector: Any, case: Case) -> dict[str, Any]:
    """Choose the vector and, if it has the right shape, run backward with it."""
    x, k, power, wanted = case
    y = k * x**power
    vector = choose_vector(x, y, wanted)
    report = {"vector": copies(vector), "before": copies(x.grad), "after": None}
    if isinstance(vector, torch.Tensor) and vector.shape == y.shape:
        y.backward(vector)
        report["after"] = copies(x.grad)
    return report


PROBE = Probe("01.4", "choose_vector", make_case, observe)
