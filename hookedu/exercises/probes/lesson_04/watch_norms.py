"""What is observed of 04.4, `watch_norms(model, seen)`: two backward passes, then two more without the hooks."""

import itertools
import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_04.shared import all_hooks_on, remove_handles
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import gradients, whole

_USED = ("stem", "body", "head")  # in the order of calls in forward
Case = tuple[torch.nn.Module, torch.Tensor, torch.Tensor]


class _Net(torch.nn.ModuleDict):
    """Layers that are called in another order than defined."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in _USED:
            x = self[name](x)
        return x


def make_case(rng: random.Random) -> Case:
    """Return (model, x, w) for loss = (w * model(x)).sum(); one bias of the model is frozen."""
    orders = [order for order in itertools.permutations(_USED) if order != _USED]
    model = _Net({name: torch.nn.Linear(3, 3) for name in rng.choice(orders)})
    for parameter in model.parameters():
        parameter.data = whole(rng, parameter.numel()).reshape(parameter.shape)
    model.get_parameter("body.bias").requires_grad_(False)
    return model, whole(rng, 6).reshape(2, 3), whole(rng, 3)


def two_passes(model: torch.nn.Module, x: torch.Tensor, w: torch.Tensor) -> None:
    """Run two backward passes without zero_grad(); the second gradient is three times the first."""
    for scale in (1, 3):
        (scale * w * model(x)).sum().backward()


def observe(watch_norms: Any, case: Case) -> dict[str, Any]:
    """Watch the model; run two passes, remove the hooks, and run two more."""
    model, seen = case[0], []
    handles = watch_norms(model, seen)
    report = {"handles": handles, "early": len(seen), "hooks": sum(map(all_hooks_on, model.parameters()))}
    two_passes(*case)
    report |= {"seen": seen[:40], "grads": gradients(model)}
    remove_handles(handles)
    before = len(seen)
    two_passes(*case)
    return report | {"off": len(seen) == before}


PROBE = Probe("04.4", "watch_norms", make_case, observe)
