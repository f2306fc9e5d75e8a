"""What is observed of 07.1, `grad_shapes(layer, x)`: its results for three inputs, and what it leaves behind."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_07.shared import linear, quiet
from hookedu.exercises.probing import Probe

Case = tuple[nn.Linear, dict[str, torch.Tensor]]


def make_case(rng: random.Random) -> Case:
    """Return a layer and its inputs. All sizes differ, so that no two shapes are equal by chance."""
    n_in, n_out, batch, steps = rng.sample(range(2, 10), 4)
    inputs = {
        "two_d": torch.ones(batch, n_in, requires_grad=True),
        "three_d": torch.ones(batch, steps, n_in, requires_grad=True),
        "frozen": torch.ones(batch, n_in),
    }
    return linear(rng, n_in, n_out), inputs


def _plain(value: Any) -> Any:
    """Convert nested tuples and torch.Size to lists: an answer may use any of them."""
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value


def observe(grad_shapes: Any, case: Case) -> dict[str, Any]:
    """Ask for the shapes of each input; then look for hooks on the layer, gradients, and a switched input."""
    layer, inputs = case
    with quiet():
        found = {name: _plain(grad_shapes(layer, x)) for name, x in inputs.items()}
    hooks = (layer._forward_pre_hooks, layer._forward_hooks, layer._backward_pre_hooks, layer._backward_hooks)
    places = {"layer.weight": [layer.weight], "x": inputs.values()}
    grads = [name for name, tensors in places.items() if any(t.grad is not None for t in tensors)]
    return found | {"traces": [sum(map(len, hooks)), grads, inputs["frozen"].requires_grad]}


PROBE = Probe("07.1", "grad_shapes", make_case, observe)
