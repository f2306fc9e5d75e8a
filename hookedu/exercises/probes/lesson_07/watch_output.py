"""What is observed of 07.4, `watch_output(layer, seen)`, with an in-place ReLU behind the layer."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies

Case = tuple[nn.Sequential, torch.Tensor, list[torch.Tensor]]


def make_case(rng: random.Random) -> Case:
    """Return (model, x, ws) for losses (w * model(x)).sum(); the ReLU blocks some positions of each row, not all."""
    while True:
        first, last = linear(rng, 3, 4), linear(rng, 4, 2)
        x = rows(rng, 3)
        if all(0 < n < 4 for n in (x @ first.weight.T > 0).sum(1).tolist()):
            model = nn.Sequential(first, nn.ReLU(inplace=True), last)
            return model, x.requires_grad_(), [rows(rng, 2), rows(rng, 2)]


def observe(watch_output: Any, case: Case) -> dict[str, Any]:
    """Watch two backward passes; evaluate the model, remove the hook, and run backward once more."""
    model, x, ws = case
    seen: list[Any] = []
    with quiet():
        handle = watch_output(model[0], seen)
        for w in ws:
            (w * model(x)).sum().backward()
        saw = {"seen": copies(seen), "x_grad": copies(x.grad), "handle": handle, "ended": "ok"}
        try:
            with torch.no_grad():
                model(x)
        except RuntimeError as error:
            saw["ended"] = str(error)[:200]
        length = len(seen)
        remove_handle(handle)
        (ws[0] * model(x)).sum().backward()
    return saw | {"after_removal": len(seen) - length}


PROBE = Probe("07.4", "watch_output", make_case, observe)
