"""Convolutions of small whole numbers, and what an answer left behind on a model, for the probes of lesson 09."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.onlooker import Onlooker


class Bystander(Onlooker):
    """An onlooker that also remembers `training` and `inplace` of every module."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self._before = self._settings()

    def _settings(self) -> list[tuple[bool, Any]]:
        return [(module.training, getattr(module, "inplace", None)) for module in self._model.modules()]

    def traces(self) -> dict[str, Any]:
        """Return the observations of what the answer left behind."""
        return {"unchanged": self._settings() == self._before, "left": self.others(), "lost": self.lost()}


def conv(rng: random.Random, n_in: int, n_out: int, size: int, padding: int = 0) -> nn.Conv2d:
    """Return a Conv2d without bias whose weights are ±1 and ±2: a few in sequence still give exact sums."""
    layer = nn.Conv2d(n_in, n_out, size, padding=padding, bias=False)
    values = [float(rng.choice((-2, -1, 1, 2))) for _ in range(layer.weight.numel())]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(values).reshape(layer.weight.shape))
    return layer


def picture(rng: random.Random) -> torch.Tensor:
    """Return a picture of shape (1, 1, 3, 3) with whole numbers from -9 to 9."""
    return torch.tensor([float(rng.randint(-9, 9)) for _ in range(9)]).reshape(1, 1, 3, 3)
