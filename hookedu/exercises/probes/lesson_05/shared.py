"""What the probes of lesson 05 share."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import torch
from torch import nn

from hookedu.exercises import tools
from hookedu.exercises.conduct import Interruption
from hookedu.exercises.tools import linear

ERRORS = (*tools.ERRORS, Interruption)  # what broken layers raise in turn
_TEXT = "out of memory"


class Failing:
    """The `forward` of a broken layer: it raises an exception of the type `error`, which may change, and keeps it."""

    error: type[BaseException] = Interruption
    raised: BaseException | None = None

    def __call__(self, *args: Any) -> NoReturn:
        self.raised = self.error(_TEXT)
        raise self.raised


def instead_of(failing: Failing, error: BaseException) -> str | None:
    """Return what came in place of the exception of a broken layer, or None if it came through as it is.

    A new exception of the same type and text has lost what the old one carried.
    """
    if error is failing.raised and error.args == (_TEXT,):
        return None
    alike = type(error) is failing.error and error.args == (_TEXT,)
    return f"{type(error).__name__}: {error}" + "; caught is raised == False" * alike


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


def watch_graph(*modules: nn.Module) -> Callable[[], bool]:
    """Watch what the `forward` of modules computes; the result tells whether any of it was cut off in place since."""
    made: list[torch.Tensor] = []

    def watched(forward: Callable[..., Any], *args: Any) -> Any:
        out = forward(*args)
        made.extend([out] if out.requires_grad else [])
        return out

    for module in modules:
        module.forward = partial(watched, module.forward)
    return lambda: not all(out.requires_grad for out in made)


def count_attached(found: Any) -> int:
    """Return how many tensors hold their graph, among the values of a dict and in its lists; 0 if it is none."""
    values = found.values() if isinstance(found, dict) else ()
    groups = (value if isinstance(value, list | tuple) else [value] for value in values)
    return sum(isinstance(t, torch.Tensor) and t.requires_grad for group in groups for t in group)
