"""What is observed of 07.4, `watch_output(layer, seen)`, with an in-place ReLU behind the layer."""

import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import attempted, copies, whole


class Case(NamedTuple):
    """A model, x, each w of a loss (w * model(x)).sum(), what the list already holds, and backward passes of the last loss."""

    model: nn.Sequential
    x: torch.Tensor
    ws: list[torch.Tensor]
    old: list[torch.Tensor]
    times: int


def make_case(rng: Draw) -> Case:
    """Return a case in which the ReLU blocks some positions, not all. Somebody else has a hook on the layer.

    The layer is a Linear in training; then a float64 convolution in eval mode with tiny gradients, the last of them all
    zeros; then a Linear with small weights for a sequence, with a gradient that is infinite and one that comes twice, and the
    list is not empty.
    """
    while True:
        model, x = (_plain, _convolution, _sequence)[rng.turn](rng)
        on = model[0](x) > 0
        if on.flatten(1).any(1).all() and not on.all():  # of each sample: an inf must come through
            break
    model[0].register_forward_hook(lambda module, args, output: None)
    ws = [rows(rng, 2, len(x)) for _ in range(2 if rng.turn == 0 else 3)]
    if rng.turn == 1:
        model, x = model.double(), x.double()
        tiny = (1 + 2**-30) / 4096  # whole numbers times it need float64: nothing less precise can keep them
        ws = [ws[0].double() * tiny, ws[1].double() * tiny, torch.zeros_like(ws[2]).double()]
    if rng.turn == 2:
        next(model[0].parameters()).data /= 4096  # the largest float32 in place of inf would show in x.grad
        ws[1] = torch.tensor([[0.0, torch.inf], [0.0, 0.0]])
    old = [torch.ones(1)] if rng.turn == 2 else []
    return Case(model, x.requires_grad_(), ws, old, 2 if rng.turn == 2 else 1)


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
    """Watch backward passes, and evaluate between them; remove the hooks, run backward once more.

    The last layer is watched too, for another list. In the end the layer runs frozen, with an input that needs no gradient
    and with one that does, and for two lists at once.
    """
    model, x, ws, old, times = case
    seen: list[Any] = [*old]
    others: list[Any] = []
    both: tuple[list[Any], list[Any]] = [], []

    def evaluate() -> str:
        with torch.no_grad():
            model(x)
            return "layer(x).requires_grad == True" if model[0](x).requires_grad else "ok"

    def run_frozen() -> bool:
        frozen = [parameter.requires_grad_(False) for parameter in model[0].parameters()]
        try:
            data = x.detach()
            needs = model[0](data).requires_grad or data.requires_grad
            remove_handle(watch_output(model[0], []))
        finally:
            for parameter in frozen:
                parameter.requires_grad_()
        return needs

    def pass_frozen() -> int:
        """Return how many gradients come for a frozen layer whose input needs one."""
        frozen = [parameter.requires_grad_(False) for parameter in model[0].parameters()]
        seen_frozen: list[Any] = []
        try:
            with watch_output(model[0], seen_frozen):
                (ws[0] * model(x)).sum().backward()
        finally:
            for parameter in frozen:
                parameter.requires_grad_()
        return len(seen_frozen)

    with quiet():
        handle = watch_output(model[0], seen)
        second = watch_output(model[-1], others)
        (ws[0] * model(x)).sum().backward()
        ended = attempted(evaluate)
        losses = [(w * model(x)).sum() for w in ws[1:]]  # all forward passes first
        for loss in losses + losses[-1:] * (times - 1):
            loss.backward(retain_graph=True)
        saw = {
            "kept": [*map(id, seen[: len(old)])] == [*map(id, old)],
            "seen": copies([one for one in seen if not any(one is o for o in old)]),
        }
        saw |= {"others": copies(others), "x_grad": copies(x.grad), "handle": handle}
        saw |= {"ended": ended, "frozen": attempted(run_frozen)}
        length = len(seen)
        remove_handle(handle)
        remove_handle(second)
        (ws[0] * model(x)).sum().backward()
        saw["after_removal"] = len(seen) - length
        saw["behind_trained"] = attempted(pass_frozen)
        handles = [watch_output(model[0], one) for one in both]
        (ws[0] * model(x)).sum().backward()
        for one in handles:
            remove_handle(one)
    return saw | {"both": [*map(len, both)]}


PROBE = Probe("07.4", "watch_output", make_case, observe, cases=3, changes=(1,), leaves=(HANDLES,))
