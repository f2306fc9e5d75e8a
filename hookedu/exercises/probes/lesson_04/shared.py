"""Helpers shared by the probes of lesson 04."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import remove_handle
from hookedu.exercises.tools import whole


class Unusual(nn.Module):
    """A parameter of its own, layers inside layers, two that share a weight, and one that is frozen, in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1, 1, 3))
        self.twice = nn.Linear(3, 3, bias=False)
        self.again = nn.Linear(3, 3, bias=False)
        self.again.weight = self.twice.weight
        self.inner = nn.Sequential(nn.Sequential(nn.Linear(3, 3)), nn.PReLU())
        self.still = nn.Linear(3, 3).eval().requires_grad_(False)
        self.pair = nn.Bilinear(3, 3, 3)
        self.head = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take and return a tensor of shape (batch, 1, 3)."""
        x = self.inner(x + self.shift)
        return self.head(self.still(self.pair(x, self.again(self.twice(x).tanh()))))


def fill(model: nn.Module, rng: Any, scale: float = 1.0) -> None:
    """Set every parameter to whole numbers times `scale`."""
    for parameter in model.parameters():
        values = torch.cat([whole(rng, 9) for _ in range(0, parameter.numel(), 9)])[: parameter.numel()]
        parameter.data = scale * values.reshape(parameter.shape)


def somebodys(_: torch.Tensor) -> None:
    """Look at a gradient or a parameter: a hook of somebody else."""


def use(module: nn.Module) -> None:
    """Leave what an earlier use of a module may leave: a .grad in every parameter, and hooks of somebody else."""
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
        if parameter.requires_grad:
            parameter.register_hook(somebodys)
            parameter.register_post_accumulate_grad_hook(somebodys)


def _own(*tables: Mapping[int, Any] | None) -> int:
    return sum(inspect.unwrap(hook) is not somebodys for table in tables for hook in (table or {}).values())


def tensor_hooks_on(tensor: torch.Tensor) -> int:
    """Return the number of tensor hooks on a tensor, without `somebodys`."""
    return _own(tensor._backward_hooks)


def all_hooks_on(tensor: torch.Tensor) -> int:
    """Return the number of tensor hooks and post-accumulate hooks on a tensor, without `somebodys`."""
    return _own(tensor._backward_hooks, tensor._post_accumulate_grad_hooks)


def hooked(model: nn.Module) -> dict[str, int]:
    """Return the number of hooks on each parameter, by name."""
    return {name: all_hooks_on(parameter) for name, parameter in model.named_parameters()}


def remove_handles(handles: Any) -> None:
    """Remove one handle or every handle in a list or tuple; ignore anything else."""
    for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
        remove_handle(handle)
