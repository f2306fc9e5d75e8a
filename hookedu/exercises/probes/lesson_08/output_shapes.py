"""What is observed of 08.2, `output_shapes(model, x)`: one call on a model that others watch."""

import math
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import BUFFERS
from hookedu.exercises.probes.lesson_08.shared import SomeonesHook, Watch, is_on, plain
from hookedu.exercises.probing import Draw, Probe


class Score(nn.Module):
    """Return a single number, of rank 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.square().mean()


class SmallResNet(nn.Module):
    """The stages of a tiny ResNet by name, in the order in which they run, which need not be that of the children."""

    def __init__(self, stages: dict[str, nn.Module], children: list[str]) -> None:
        super().__init__()
        for name in children:
            self.add_module(name, stages[name])
        self.register_module("optional", None)  # as layers that a configuration leaves out
        self.order, self.runs = list(stages), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        *stages, last, score = (getattr(self, name) for name in self.order)
        for stage in stages:
            x = stage(x)
        # In place: an output that somebody kept has another shape now.
        return score(last(x.squeeze_(3).squeeze_(2)))


def make_case(rng: Draw) -> tuple[SmallResNet, torch.Tensor]:
    """Return (model, x): a model in training mode; from turn 1 on, with children in any order, and 1 image.

    Two children are of one class, a module inside another child has the name of the first, and someone else has a hook on
    a parameter. In turn 1 its normalisation is frozen in eval mode, in turn 2 the whole model is in eval mode. From turn 1
    on, parameters have gradients from before.
    """
    width, first = rng.randint(3, 9), f"conv{rng.randint(1, 99)}"
    layer: OrderedDict[str, nn.Module] = OrderedDict(
        {first: nn.Conv2d(width, 2 * width, 1), "relu": nn.ReLU()}
    )
    modules = {
        first: nn.Conv2d(3, width, 3, stride=2, padding=1),
        "bn": nn.BatchNorm2d(width),
        "relu": nn.ReLU(),
        "mix": nn.Conv2d(width, width, 1),
        "layer": nn.Sequential(layer),
        "avgpool": nn.AdaptiveAvgPool2d(1),
        "fc": nn.Linear(2 * width, rng.randint(5, 12)),
        "score": Score(),
    }
    stages = {w if w == first else f"{w}{rng.randint(1, 99)}": module for w, module in modules.items()}
    model = SmallResNet(stages, rng.sample(list(stages), len(stages)) if rng.turn else list(stages))
    {1: modules["bn"], 2: model}.get(rng.turn, nn.Identity()).eval()
    if rng.turn == 1:
        modules["bn"].requires_grad_(False)
    for parameter in model.parameters() if rng.turn else ():
        parameter.grad = torch.ones_like(parameter)
    modules["fc"].weight.register_hook(SomeonesHook())
    shape = (1 if rng.turn else rng.randint(2, 5), 3, 4 * rng.randint(3, 5), 12)
    return model, (torch.arange(math.prod(shape)) % 7 - 2.0).reshape(shape)


def observe(output_shapes: Any, case: tuple[SmallResNet, torch.Tensor]) -> dict[str, Any]:
    """Let it run once; compare the modules and their attributes with those before."""
    model, x = case
    before = {module: set(vars(module)) for module in model.modules()}
    first = next(model.children())
    handle = first.register_forward_hook(SomeonesHook())
    watch = Watch(model, x)
    found = plain(output_shapes(model, x))
    return {
        "found": found,
        # A handle takes its hook off as long as the module has the table of hooks that it had.
        "stuck": handle.id in first._forward_hooks and not is_on(handle),
        "marks": sorted({key for module, keys in before.items() for key in set(vars(module)) - keys}),
        "runs": model.runs,
        "replaced": list(before) != list(model.modules()),
        **watch.seen(),
    }


PROBE = Probe("08.2", "output_shapes", make_case, observe, cases=3, leaves=(BUFFERS,), runs=1, restores=True)
