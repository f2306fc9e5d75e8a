"""Whole numbers, layers of them, and silence, for the probes of lesson 07."""

import random
import warnings

import torch
from torch import nn

from hookedu.exercises.tools import whole


def rows(rng: random.Random, n: int, count: int = 2) -> torch.Tensor:
    """Return rows of n whole numbers each."""
    return torch.stack([whole(rng, n) for _ in range(count)])


def linear(rng: random.Random, n_in: int, n_out: int) -> nn.Linear:
    """Return a Linear without bias whose weights are whole numbers, so that its gradients are exact."""
    layer = nn.Linear(n_in, n_out, bias=False)
    layer.weight = nn.Parameter(rows(rng, n_in, n_out))
    return layer


def quiet() -> "warnings.catch_warnings[None]":
    """Silence warnings, such as PyTorch's about backward hooks: a check reports only its verdict."""
    return warnings.catch_warnings(action="ignore")
