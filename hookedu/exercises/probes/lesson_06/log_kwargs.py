"""What is observed of 06.3, `log_kwargs(layer, log)`: three calls with keyword arguments, and one without the hook."""

import random
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks

Case = namedtuple("Case", "x shape first last")  # the input; the shape of a mask, and two scales


def make_case(rng: random.Random) -> Case:
    """Return a case with scales that differ."""
    shape = (rng.randint(1, 4), rng.randint(2, 9))
    return Case(torch.ones(1, 2), shape, *rng.sample([0.25, 0.5, 1.5, 2.0, 2.5, 4.0, 8.0, 16.0], 2))


def keywords(case: Case) -> list[dict[str, Any]]:
    """Return the keyword arguments of each call."""
    return [{"mask": torch.zeros(case.shape), "scale": case.first}, {}, {"scale": case.last}]


class _Attend(nn.Module):
    """A layer with one positional input and any keyword arguments; it records what its forward receives."""

    def __init__(self):
        super().__init__()
        self.inputs, self.received = [], []

    def forward(self, x: torch.Tensor, **options: Any) -> torch.Tensor:
        self.received.append(copies(_plain(options)))
        self.inputs.append(x)
        return x


def _plain(value: Any) -> Any:
    """Convert every torch.Size to a list: `encode` would keep only the name of its type."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, torch.Size)) else value


def observe(log_kwargs: Any, case: Case) -> dict[str, Any]:
    """Make the calls, then one more after removing the hook."""
    layer, log, x = _Attend(), [], case.x
    saw = {"handle": log_kwargs(layer, log), "hooks": module_hooks(layer)}
    outputs = [layer(x, **options) for options in keywords(case)]
    saw |= {"log": copies(_plain(log)), "received": list(layer.received), "inputs": copies(layer.inputs)}
    saw |= {"same_input": all(i is x for i in layer.inputs), "same_output": all(o is x for o in outputs)}
    remove_handle(saw["handle"])
    layer(x, scale=1.0)
    return saw | {"after_removal": len(log) - len(saw["log"])}


PROBE = Probe("06.3", "log_kwargs", make_case, observe)
