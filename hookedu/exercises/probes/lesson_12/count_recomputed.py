"""What is observed of 12.2, `count_recomputed(model, x)`: its counts, how it ran the model, and its hooks."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import module_hooks

_NAMES = ["fc", "act", "body", "neck", "head", "stem", "gate", "proj", "mix", "out"]


def make_case(rng: random.Random) -> tuple[dict[str, str], int]:
    """Return (kinds, width): kinds by name of at least two layers that save tensors, then 1 to 3 that save none."""
    saving = [rng.choice(["linear", "tanh"]) for _ in range(rng.randint(2, 4))]
    idle = [rng.choice(["times 2", "flatten"]) for _ in range(rng.randint(1, 3))]
    names = rng.sample(_NAMES, len(saving + idle))
    return dict(zip(names, saving + idle, strict=True)), rng.randint(2, 5)


class Twice(nn.Module):
    """A layer that multiplies by 2, for which backward needs no saved tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


class EndsTwice(nn.Sequential):
    """A Sequential that runs its first and its last layer twice."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self[-1](super().forward(self[0](input)))


def _layer(kind: str, width: int) -> nn.Module:
    # The flatten has a child of its own, which is not to be counted.
    layers = {"tanh": nn.Tanh(), "times 2": Twice(), "flatten": nn.Sequential(nn.Flatten())}
    return nn.Linear(width, width) if kind == "linear" else layers[kind]


def observe(count_recomputed: Any, case: tuple[dict[str, str], int]) -> dict[str, Any]:
    """Note the starts of all layers while the answer runs."""
    (kinds, width), model, started = case, EndsTwice(), []
    for name, kind in kinds.items():
        model.add_module(name, _layer(kind, width))
        model[-1].register_forward_pre_hook(lambda *_, name=name: started.append(name))
    x = torch.ones(1, width, requires_grad=True)
    counts = count_recomputed(model, x)
    return {
        "counts": dict(counts) if isinstance(counts, dict) else counts,
        "starts": {name: started.count(name) for name in kinds},
        "backward": x.grad is not None,
        "left": module_hooks(model) - len(kinds),
    }


PROBE = Probe("12.2", "count_recomputed", make_case, observe)
