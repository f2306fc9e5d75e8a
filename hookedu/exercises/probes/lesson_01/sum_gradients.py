"""What is observed of 01.2, `sum_gradients(w, losses)`: w.grad, with and without a gradient before the call."""

import random
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """Values for losses (factor * w**2).sum(), a factor in each row; `old` is w.grad before the second call."""

    w: torch.Tensor
    factors: torch.Tensor
    old: torch.Tensor


def make_case(rng: random.Random) -> Case:
    """Return a case of three losses."""
    n = rng.randint(2, 3)
    # Ascending factors, so that the losses differ and neither the first nor the last equals their average.
    columns = [sorted(rng.sample(range(2, 10), 3)) for _ in range(n)]
    return Case(whole(rng, n).requires_grad_(), torch.tensor(columns, dtype=torch.float32).T, whole(rng, n))


def observe(sum_gradients: Any, case: Case) -> dict[str, Any]:
    """Call twice; before the second call w.grad holds an old gradient."""
    w, factors, old = case

    def losses() -> list[torch.Tensor]:
        h = w**2  # shared by all losses: the first backward frees what the others need
        return [(factor * h).sum() for factor in factors]

    result = sum_gradients(w, losses())
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]  # torch.autograd.grad returns a tuple
    report = {"returned": result, "first": copies(w.grad)}
    w.grad = old.clone()
    sum_gradients(w, losses())
    return report | {"second": copies(w.grad)}


PROBE = Probe("01.2", "sum_gradients", make_case, observe)
