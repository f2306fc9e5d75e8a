"""What is observed of 07.5, `stop_gradient(layer)`: of a layer amid others, beside a shortcut, and in front."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, whole


class Shift(nn.Module):
    """x + bias, whose backward passes on the very tensor it receives, as that of a residual sum does."""

    def __init__(self, bias: torch.Tensor) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.bias


Case = tuple[nn.Linear, nn.Linear, Shift, torch.Tensor, torch.Tensor]


def make_case(rng: random.Random) -> Case:
    """Return (front, layer, shift, x, w) for losses (w * y).sum(); x and w have one row per sample, two in all."""
    front, layer, shift = linear(rng, 3, 4), linear(rng, 4, 4), Shift(whole(rng, 4).repeat(2, 1))
    return front, layer, shift, rows(rng, 3), rows(rng, 4)


def _grads(loss: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor | None]:
    """Run backward; return the gradients of the weights, and remove them."""
    loss.backward()
    grads = [copies(weight.grad) for weight in weights]
    for weight in weights:
        weight.grad = None
    return grads


def observe(stop_gradient: Any, case: Case) -> dict[str, Any]:
    """Observe gradients with the hook, after its removal, with a shortcut, and where x requires no gradient."""
    front, layer, shift, x, w = case
    with quiet():
        handle = stop_gradient(layer)
        inner, own = _grads((w * layer(front(x))).sum(), front.weight, layer.weight)
        remove_handle(handle)
        saw = {"handle": handle, "inner": inner, "own": own}
        saw["after"] = _grads((w * layer(front(x))).sum(), front.weight, layer.weight)

        stop_gradient(shift)
        h = front(x)
        saw["skip"], saw["shifted"] = _grads((w * (shift(h) + h)).sum(), front.weight, shift.bias)

        stop_gradient(front)
        try:  # x does not require grad: grad_input is (None,)
            (saw["first"],) = _grads((w * front(x)).sum(), front.weight)
        except (TypeError, AttributeError, RuntimeError) as error:
            saw["first"] = f"{type(error).__name__}: {error}"[:120]
    return saw


PROBE = Probe("07.5", "stop_gradient", make_case, observe)
