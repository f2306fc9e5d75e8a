"""What is observed of 01.1, `classify(tensors)`: its result, and whether it changed a tensor."""

import random
from typing import Any

import torch

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import whole

Case = dict[str, tuple[str, torch.Tensor]]


def make_case(rng: random.Random) -> Case:
    """Return nine tensors and how each was made, by name. Names and order are random and reveal nothing."""
    w, data = whole(rng, 2).requires_grad_(), whole(rng, 2)
    with torch.no_grad():
        quiet = 2 * w
    made = [
        ("torch.tensor([...], requires_grad=True)", w),
        ("torch.nn.Parameter(torch.ones(2))", torch.nn.Parameter(torch.ones(2))),
        ("(2 * data).requires_grad_()", (2 * data).requires_grad_()),
        ("2 * w", 2 * w),
        ("w.double()", w.double()),
        ("(w * data).sum()", (w * data).sum()),
        ("torch.tensor([...])", data),
        ("w.detach()", w.detach()),
        ("2 * w, under torch.no_grad()", quiet),
    ]
    rng.shuffle(made)
    return dict(zip(rng.sample("abcdefghkmnpqrs", len(made)), made, strict=True))


def observe(classify: Any, case: Case) -> dict[str, Any]:
    """Classify the tensors; `changed` is the name of the first whose requires_grad differs afterwards."""
    tensors = {name: tensor for name, (_, tensor) in case.items()}
    flags = {name: tensor.requires_grad for name, tensor in tensors.items()}
    result = classify(dict(tensors))
    changed = (name for name, tensor in tensors.items() if tensor.requires_grad != flags[name])
    return {"result": result, "changed": next(changed, None)}


PROBE = Probe("01.1", "classify", make_case, observe)
