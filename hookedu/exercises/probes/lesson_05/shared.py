"""What the probes of lesson 05 share."""

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Interruption
from hookedu.exercises.tools import linear


def out_of_memory(*args: Any) -> Any:
    """Fail: the `forward` of a broken layer."""
    raise Interruption


def make_body(weight: torch.Tensor) -> nn.Sequential:
    """Return the inner part of a model: the layers `fc` and `act`."""
    return nn.Sequential(OrderedDict(fc=linear(weight), act=nn.ReLU()))


def count_attached(found: Any) -> int:
    """Return how many tensors hold their graph, among the values of a dict and in its lists; 0 if it is none."""
    values = found.values() if isinstance(found, dict) else ()
    groups = (value if isinstance(value, list | tuple) else [value] for value in values)
    return sum(isinstance(t, torch.Tensor) and t.requires_grad for group in groups for t in group)
