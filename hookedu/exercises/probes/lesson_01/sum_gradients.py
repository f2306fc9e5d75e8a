"""What is observed of 01.2, `sum_gradients(w, losses)`: w.grad, with and without a gradient before the call."""

import math
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole

_SHAPES = ((3,), (), (2, 2), (1,))
_LOSSES = (3, 2, 4, 1)


class Case(NamedTuple):
    """Values for losses (factor * w**2).sum(), a factor in each row; `old` is w.grad before the second call.

    Two rows that are equal stand for one loss that is in the list twice.
    """

    w: torch.Tensor
    factors: torch.Tensor
    old: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case of one to five losses of weights of any rank up to 2."""
    shape, count = _SHAPES[rng.turn], _LOSSES[rng.turn]
    n = math.prod(shape)
    # In order, so that the losses differ and neither the first nor the last equals their average.
    numbers = range(-9, -1) if rng.turn else range(2, 10)
    rows = [sorted(rng.sample(numbers, count), reverse=rng.turn == 2) for _ in range(n)]
    factors = torch.tensor(rows, dtype=torch.float32).T.reshape(count, *shape)
    w, old = whole(rng, n), whole(rng, n).reshape(shape)
    w[0] = -w[0].abs()
    if rng.turn == 2:
        old[0, 0] = torch.inf
        factors = factors[[0, 1, 1, 2, 3]]
    return Case(w.reshape(shape).requires_grad_(), factors, old)


def observe(sum_gradients: Any, case: Case) -> dict[str, Any]:
    """Call twice; for the second call, equal weights have an old gradient."""
    w, factors, old = case

    def losses(w: torch.Tensor) -> list[torch.Tensor]:
        h = w**2  # shared by all losses: the first backward frees what the others need
        rows, places = factors.unique_consecutive(return_inverse=True, dim=0)
        different = [(factor * h).sum() for factor in rows]
        return [different[place] for place in places]

    again = copies(w).requires_grad_()
    result = sum_gradients(w, losses(w))
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]  # torch.autograd.grad returns a tuple
    report = {"returned": result, "first": copies(w.grad)}
    again.grad = old.clone()
    sum_gradients(again, losses(again))
    return report | {"second": copies(again.grad)}


PROBE = Probe("01.2", "sum_gradients", make_case, observe, cases=len(_SHAPES), leaves=(GRAD,))
