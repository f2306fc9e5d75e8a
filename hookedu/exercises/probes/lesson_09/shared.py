"""Convolutions of small whole numbers, pictures, and what third parties left on a model, for the probes of lesson 09."""

import random
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import nn

from hookedu.exercises.tools import someones


def conv(
    rng: random.Random, n_in: int, n_out: int, size: int, padding: int = 0, groups: int = 1
) -> nn.Conv2d:
    """Return a Conv2d without bias whose weights are ±1 and ±2: a few in sequence still give exact sums."""
    layer = nn.Conv2d(n_in, n_out, size, padding=padding, groups=groups, bias=False)
    make_whole(rng, layer.weight)
    return layer


def make_whole(rng: random.Random, weight: torch.Tensor) -> None:
    """Set weights to ±1 and ±2."""
    values = [float(rng.choice((-2, -1, 1, 2))) for _ in range(weight.numel())]
    with torch.no_grad():
        weight.copy_(torch.tensor(values).reshape(weight.shape))


def picture(rng: random.Random, n: int = 1) -> torch.Tensor:
    """Return n pictures, (n, 1, 3, 3), with whole numbers from -9 to 9."""
    return torch.tensor([float(rng.randint(-9, 9)) for _ in range(9 * n)]).reshape(n, 1, 3, 3)


@someones
def _ignore(grad: torch.Tensor) -> None:
    """Stand on a parameter as the hook of a third party."""


def look_on(model: nn.Module) -> Counter[nn.Module]:
    """Leave on a model what no answer may change: hooks on modules and parameters, old gradients, frozen parameters.

    Return how often these hooks run, by module: those on a copy of the model count for the copy.
    """
    calls: Counter[nn.Module] = Counter()

    @someones
    def look(module: nn.Module, args: Any, output: Any) -> None:
        calls[module] += 1

    for module in model.modules():
        module.register_forward_hook(look)
    for n, parameter in enumerate(model.parameters()):
        parameter.grad = torch.ones_like(parameter)
        parameter.register_hook(_ignore)
        parameter.requires_grad_(n == 0)
    return calls


def is_number(value: Any) -> bool:
    """Check whether a value is a NumPy number or a tensor of one element, which `item()` makes a Python number."""
    return isinstance(value, np.generic) or (isinstance(value, torch.Tensor) and value.numel() == 1)
