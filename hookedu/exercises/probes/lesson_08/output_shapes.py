"""What is observed of 08.2, `output_shapes(model, x)`: one call on a model with someone else's hook on it."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_08.shared import SomeonesHook, is_on
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import module_hooks


class SmallResNet(nn.Module):
    """The stages of a tiny ResNet, under names that differ from check to check."""

    def __init__(self, names: list[str], width: int, classes: int) -> None:
        super().__init__()
        stages = (
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.ReLU()),
            nn.AdaptiveAvgPool2d(1),
            nn.Linear(2 * width, classes),
        )
        for name, stage in zip(names, stages, strict=True):
            self.add_module(name, stage)
        self.runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        *stages, last = (module for module in self._modules.values() if module is not None)
        for stage in stages:
            x = stage(x)
        return last(x.flatten(1))


def make_case(rng: random.Random) -> tuple[SmallResNet, torch.Tensor]:
    """Return (model, x)."""
    words = ("conv", "bn", "relu", "maxpool", "layer", "avgpool", "fc")
    names = [f"{word}{rng.randint(1, 99)}" for word in words]
    model = SmallResNet(names, rng.randint(3, 9), rng.randint(5, 12))
    side = 4 * rng.randint(3, 5)
    return model, torch.ones(rng.randint(2, 5), 3, side, side)


def observe(output_shapes: Any, case: tuple[SmallResNet, torch.Tensor]) -> dict[str, Any]:
    """Let it run once; compare the modules, their attributes and their hooks with those before."""
    model, x = case
    before = {module: set(vars(module)) for module in model.modules()}
    theirs = next(model.children()).register_forward_hook(SomeonesHook())
    found = output_shapes(model, x)
    if isinstance(found, dict):  # of a torch.Size, `encode` would keep only the type
        found = {name: tuple(v) if isinstance(v, tuple) else v for name, v in found.items()}
    return {
        "found": found,
        "marks": sorted({key for module, keys in before.items() for key in set(vars(module)) - keys}),
        "replaced": list(before) != list(model.modules()),
        "mode": all(module.training for module in before),
        "runs": model.runs,
        "hooks": (module_hooks(model) - is_on(theirs), int(is_on(theirs))),
    }


PROBE = Probe("08.2", "output_shapes", make_case, observe)
