"""What is observed of 01.3, `keep_all(tensors, loss)`: the gradients that are kept, and what happened to the tensors."""

import random
import warnings
from typing import Any

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, whole

Case = tuple[dict[str, torch.Tensor], float, torch.Tensor]


def make_case(rng: random.Random) -> Case:
    """Return (tensors, k, loss): leaf x, data without gradient, h = k * x, y = h**2, loss = (data * y).sum()."""
    n = rng.randint(2, 3)
    x, data, k = whole(rng, n).requires_grad_(), whole(rng, n), float(rng.randint(2, 5))
    h = k * x
    y = h**2
    tensors = {"x": x, "data": data, "h": h, "y": y}
    order = rng.sample(sorted(tensors), len(tensors))
    return {name: tensors[name] for name in order}, k, (data * y).sum()


def observe(keep_all: Any, case: Case) -> dict[str, Any]:
    """Call once, and look at the tensors."""
    tensors, _, loss = case
    given = dict(tensors)
    keep_all(given, loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading .grad of non-leaves is intended here
        grads = {name: copies(tensors[name].grad) for name in ("y", "h", "x")}
    return {
        "grads": grads,
        "retains": tensors["h"].retains_grad or tensors["y"].retains_grad,
        "data_flag": tensors["data"].requires_grad,
        "replaced": any(given.get(name) is not tensor for name, tensor in tensors.items()),
    }


PROBE = Probe("01.3", "keep_all", make_case, observe)
