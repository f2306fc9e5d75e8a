"""What is observed of 01.2, `sum_gradients(w, losses)`: w.grad, with and without a gradient before the call."""

import math
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.observation import type_name
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole

_SHAPES = ((3,), (), (2, 2), (1,))
_LOSSES = (7, 2, 6, 1)


class Case(NamedTuple):
    """Values for losses (factor * h).sum(), a factor in each row; `old` is w.grad before the second call.

    Rows that are equal stand for one loss that is in the list twice. h is w**2, with `shares` w**2 + b for another
    leaf b of zeros, whose gradient is `old` before the first call.
    """

    w: torch.Tensor
    factors: torch.Tensor
    old: torch.Tensor
    shares: bool


def make_case(rng: Draw) -> Case:
    """Return a case of seven, two, eight or one losses of weights of any rank up to 2; the second time in float64."""
    shape, count = _SHAPES[rng.turn], _LOSSES[rng.turn]
    n = math.prod(shape)
    # In order, so that the losses differ and neither the first nor the last equals their average.
    numbers = range(-9, -1) if rng.turn else range(2, 10)
    rows = [sorted(rng.sample(numbers, count), reverse=rng.turn == 2) for _ in range(n)]
    factors = torch.tensor(rows, dtype=torch.float32).T.reshape(count, *shape)
    w, old = whole(rng, n), whole(rng, n).reshape(shape)
    w[0] = -w[0].abs()
    if rng.turn == 0:  # the value of one loss is 0, its gradient is not
        w[1], factors[3] = -w[0], factors[3, 0] * torch.tensor([1.0, -1.0, 0.0])
    if rng.turn == 2:
        old[0, 0] = torch.inf
        # The last loss is there twice, and the one before has the same value, with two factors exchanged. The second
        # is there twice too: without what is there again, it is not the sum of the first so many.
        w[3], factors[-1, 1, 1] = -w[0], factors[-1, 0, 0] - 1
        factors[-2] = factors[-1].clone()
        factors[-2, 0, 0], factors[-2, 1, 1] = factors[-1, 1, 1], factors[-1, 0, 0]
        factors = factors[[0, 1, 2, 1, 3, 4, 5, 5]]
    if rng.turn == 3:
        old *= 10  # no factor cancels it
    if rng.turn == 1:
        w, factors, old = w.double(), factors.double(), old.double()
    return Case(w.reshape(shape).requires_grad_(), factors, old, shares=rng.turn == 3)


def observe(sum_gradients: Any, case: Case) -> dict[str, Any]:
    """Call twice; for the second call, equal weights have an old gradient."""
    w, factors, old, shares = case
    b = torch.zeros_like(w).requires_grad_()
    b.grad = old.clone()

    def losses(w: torch.Tensor) -> list[torch.Tensor]:
        # Shared by all losses: the first backward frees what the others need.
        h = w**2 + b if shares else w**2
        rows, places = factors.unique(return_inverse=True, dim=0)
        different = [(factor * h).sum() for factor in rows]
        return [different[place] for place in places]

    again = copies(w).requires_grad_()
    result = sum_gradients(w, losses(w))
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]  # torch.autograd.grad returns a tuple
    report = {"returned": result, "first": copies(w.grad), "other": copies(b.grad)}
    report["attached"] = isinstance(w.grad, torch.Tensor) and w.grad.requires_grad
    again.grad = old.clone()
    sum_gradients(again, losses(again))
    return report | {"second": copies(again.grad), "expanded": _expanded(sum_gradients)}


def _expanded(sum_gradients: Any) -> Any:
    """Return w.grad where the gradient of a sum is an expanded tensor: one number in memory.

    If that cannot be written to, return the type of the error; None if anything else goes wrong.
    """
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    total = w.sum()
    try:
        sum_gradients(w, [total, total**2])
    except RuntimeError as error:
        return type_name(error) if "single memory location" in str(error) else None
    return copies(w.grad)


PROBE = Probe("01.2", "sum_gradients", make_case, observe, cases=len(_SHAPES), leaves=(GRAD,))
