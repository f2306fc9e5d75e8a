"""What is observed of 01.4, `choose_vector(x, y, wanted)`: the vector, and x.grad before and after y.backward(vector)."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """Values for y = k * x**power + c, and the gradient that is wanted."""

    x: torch.Tensor
    k: float
    power: int
    c: float
    wanted: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case in which every number of the vector is whole; or fractions, negative slopes, one tiny slope.

    In turn 3 there is a 0 in the vector and one in y. In turn 4 the slopes are huge and the vector is tiny.
    """
    # Not 3, the length in the lesson's example: a torch.ones(3) copied from there must fail.
    n = (rng.choice((2, 4)), 4, 1, 5, 2)[rng.turn]
    power = (rng.choice((2, 3)), 3, -1, 2, 2)[rng.turn]
    x, k = whole(rng, n).requires_grad_(), float(rng.randint(2, 5) * (-1 if rng.turn % 2 else 1))
    vector, c = whole(rng, n) / (4 if rng.turn else 1), 0.0
    if rng.turn == 2:
        k, vector = k / 2**40, vector * 2**40
    if rng.turn == 3:
        vector[0], c = 0, -k * x[-1].item() ** power
    if rng.turn == 4:
        k, vector = k * 2**40, vector / 2**40
    (wanted,) = torch.autograd.grad(k * x**power, x, vector)
    return Case(x, k, power, c, wanted + 0)  # no -0


def observe(choose_vector: Any, case: Case) -> dict[str, Any]:
    """Choose the vector and, if it has the right shape, run backward with it."""
    x, k, power, c, wanted = case
    y = k * x**power + c
    vector = choose_vector(x, y, wanted)
    report = {"vector": copies(vector), "before": copies(x.grad), "after": None}
    if isinstance(vector, torch.Tensor) and vector.shape == y.shape:
        y.backward(vector)
        report["after"] = copies(x.grad)
    return report


PROBE = Probe("01.4", "choose_vector", make_case, observe, cases=5, leaves=(GRAD,))
