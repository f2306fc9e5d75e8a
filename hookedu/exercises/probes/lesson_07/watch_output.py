"""What is observed of 07.4, `watch_output(layer, seen)`, with an in-place ReLU behind the layer."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_07.shared import attempted, linear, quiet, rows
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies, whole

Case = tuple[nn.Sequential, torch.Tensor, list[torch.Tensor]]


def make_case(rng: Draw) -> Case:
    """Return (model, x, ws) for losses (w * model(x)).sum(); the ReLU blocks some positions, not all.

    The layer is a Linear in training, then a convolution in eval mode, then a Linear for a sequence.
    """
    while True:
        model, x = (_plain, _convolution, _sequence)[rng.turn](rng)
        on = model[0](x) > 0
        if on.any() and not on.all():
            ws = [rows(rng, 2, len(x)) for _ in range(2 if rng.turn == 0 else 3)]
            return model, x.requires_grad_(), ws


def _plain(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor]:
    return nn.Sequential(linear(rng, 3, 4), nn.ReLU(inplace=True), linear(rng, 4, 2)), rows(rng, 3)


def _convolution(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor]:
    conv = nn.Conv2d(1, 2, 2, bias=False)
    conv.weight = nn.Parameter(whole(rng, 8).reshape(2, 1, 2, 2))
    behind = (nn.ReLU(inplace=True), nn.Flatten(), linear(rng, 8, 2))
    return nn.Sequential(conv, *behind).eval(), whole(rng, 9).reshape(1, 1, 3, 3)


def _sequence(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor]:
    behind = (nn.ReLU(inplace=True), nn.Flatten(), linear(rng, 8, 2))
    return nn.Sequential(linear(rng, 3, 4), *behind), torch.stack([rows(rng, 3), rows(rng, 3)])


def observe(watch_output: Any, case: Case) -> dict[str, Any]:
    """Watch backward passes, and evaluate the model between them; remove the hook and run backward once more."""
    model, x, ws = case
    seen: list[Any] = []

    def evaluate() -> str:
        with torch.no_grad():
            model(x)
        return "ok"

    with quiet():
        handle = watch_output(model[0], seen)
        (ws[0] * model(x)).sum().backward()
        ended = attempted(evaluate)
        for loss in [(w * model(x)).sum() for w in ws[1:]]:  # all forward passes first
            loss.backward()
        saw = {"seen": copies(seen), "x_grad": copies(x.grad), "handle": handle, "ended": ended}
        length = len(seen)
        remove_handle(handle)
        (ws[0] * model(x)).sum().backward()
    return saw | {"after_removal": len(seen) - length}


PROBE = Probe("07.4", "watch_output", make_case, observe, cases=3, changes=(1,), leaves=(HANDLES,))
