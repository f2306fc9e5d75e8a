"""What the probes of lesson 05 share."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import nn

from hookedu.exercises.conduct import Interruption
from hookedu.exercises.tools import linear


def failing(error: type[BaseException] = Interruption) -> Callable[..., NoReturn]:
    """Return the `forward` of a broken layer: it raises this exception."""

    def forward(*args: Any) -> NoReturn:
        raise error

    return forward


def make_body(weight: torch.Tensor) -> nn.Sequential:
    """Return the inner part of a model: the layers `fc` and `act`, the latter in evaluation mode."""
    return nn.Sequential(OrderedDict(fc=linear(weight), act=nn.ReLU().eval()))


def keep_outputs(module: nn.Module) -> list[torch.Tensor]:
    """Return a list that receives what the `forward` of a module computes, before any hook does."""
    made, forward = [], module.forward

    def keeping(*args: Any) -> Any:
        made.append(forward(*args))
        return made[-1]

    module.forward = keeping
    return made


def count_attached(found: Any) -> int:
    """Return how many tensors hold their graph, among the values of a dict and in its lists; 0 if it is none."""
    values = found.values() if isinstance(found, dict) else ()
    groups = (value if isinstance(value, list | tuple) else [value] for value in values)
    return sum(isinstance(t, torch.Tensor) and t.requires_grad for group in groups for t in group)
