"""What is observed of 06.2, `normalise(layer, mean, std)`: the inputs that a layer with two of them receives."""

import random
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks, same, whole

Case = namedtuple("Case", "x gate mean std")  # the two inputs of the layer, and the numbers to normalise with


def make_case(rng: random.Random) -> Case:
    """Return a case whose std is made of powers of two: every form of the formula gives the same bits."""
    n = rng.randint(2, 3)
    std = torch.tensor([rng.choice([2.0, 4.0, 8.0]) for _ in range(n)])
    x = whole(rng, 2 * n).reshape(2, n)  # all values differ, so no column is constant
    return Case(x, whole(rng, n), whole(rng, n), std)


class _Gate(nn.Module):
    """A layer with two inputs, so that an answer can lose or change the second; it keeps those of its last call."""

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        self.received = (x, gate)
        return x * gate


def observe(normalise: Any, case: Case) -> dict[str, Any]:
    """Call the layer with the case, with a leaf, and without the hook."""
    x, gate, mean, std = case
    layer, leaf, fresh = _Gate(), x.clone(), torch.ones_like(x)
    handle = normalise(layer, mean, std)
    saw = {"handle": handle, "hooks": module_hooks(layer), "output": copies(layer(x, gate)), "x": copies(x)}
    saw["first"], saw["second"] = copies(layer.received)
    if same(x, leaf):  # an in-place answer would only raise on a leaf that requires grad
        layer(leaf.requires_grad_(), gate)
        first = layer.received[0]
        if isinstance(first, torch.Tensor) and first.requires_grad:
            first.sum().backward()
    remove_handle(handle)
    layer(fresh, gate)
    return saw | {"gradient": leaf.grad, "after_removal": same(layer.received, [fresh, gate])}


PROBE = Probe("06.2", "normalise", make_case, observe)
