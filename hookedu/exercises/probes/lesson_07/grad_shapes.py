"""What is observed of 07.1, `grad_shapes(layer, x)`: its results for three inputs."""

import copy
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import RNG
from hookedu.exercises.probes.lesson_07.shared import linear, quiet
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import attempted, copies, rebuilt, same, whole

Case = tuple[nn.Linear, dict[str, torch.Tensor], nn.Linear]


def make_case(rng: Draw) -> Case:
    """Return a layer, its inputs, and the layer for the input without gradient. All sizes differ: no shapes are equal by chance.

    After the first case the layer has gradients, hooks and a mode that must stay; in the second it has no bias, all is float64, and
    an input is no leaf, in the third the inputs are not contiguous, one has 6 dimensions, and the layer that they go through is
    frozen, and of the other layer only the bias learns.
    """
    n_in, n_out, batch, steps = rng.sample(range(2, 10), 4)
    plain, batch = rng.turn == 0, 1 if rng.turn == 2 else batch
    dtype = torch.float64 if rng.turn == 1 else torch.float32
    layer = linear(rng, n_in, n_out).to(dtype)
    if rng.turn != 1:
        layer.bias = nn.Parameter(whole(rng, n_out))
    shapes = {"two_d": [batch], "three_d": [batch, steps], "frozen": [batch]}
    if not plain:
        shapes = {"two_d": [batch], "three_d": [steps, 2, batch], "frozen": [steps, batch]}
        if rng.turn == 2:
            shapes["three_d"][1:1] = [1, 2]
        layer.weight.grad = torch.ones_like(layer.weight)
        layer.register_forward_hook(lambda module, args, output: None)
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        layer.eval()
    inputs = {}
    for name, shape in shapes.items():
        x = (
            torch.ones(*shape, n_in, dtype=dtype)
            if rng.turn != 2
            else torch.ones(*shape[:-1], n_in, shape[-1]).mT
        )
        inputs[name] = x.requires_grad_(name != "frozen")
        if not plain and x.requires_grad:
            x.grad = torch.ones_like(x)
    learning = copy.deepcopy(layer)
    if rng.turn == 1:
        inputs["three_d"] = inputs["three_d"] * 1
    if rng.turn == 2:
        layer.requires_grad_(False)
        learning.weight.requires_grad_(False)
    return layer, inputs, learning


def _plain(value: Any) -> Any:
    """Convert nested tuples of any kind to plain ones, also a torch.Size."""
    return rebuilt(value, map(_plain, value)) if isinstance(value, (tuple, list)) else value


def observe(grad_shapes: Any, case: Case) -> dict[str, Any]:
    """Ask for the shapes of each input; where `x` needs no gradient, it may raise.

    `reached` says whether the gradient went on to the leaf that an input was computed from.
    """
    layer, inputs, learning = case
    nodes: list[Any] = [x.grad_fn.next_functions[0][0] for x in inputs.values() if x.grad_fn]
    sources = [node.variable for node in nodes]
    before = copies([leaf.grad for leaf in sources])
    with quiet():
        found = {name: _plain(grad_shapes(layer, inputs[name])) for name in ("two_d", "three_d")}
        found["frozen"] = attempted(lambda: _plain(grad_shapes(learning, inputs["frozen"])))
    return found | {"reached": not same(copies([leaf.grad for leaf in sources]), before)}


PROBE = Probe("07.1", "grad_shapes", make_case, observe, cases=3, leaves=(RNG,))  # a new Linear draws
