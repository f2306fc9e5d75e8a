"""Hooks of a third party on a model, and whether an answer leaves them and the graph alone."""

from typing import Any

import torch
from torch import nn

from hookedu.exercises.tools import module_hooks


class Onlooker:
    """Forward hooks of a third party, one per module of a model, which no answer may remove.

    `root_calls` counts the calls of the model itself.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model, self.root_calls = model, 0
        self._look = self._count  # a single bound method, recognised later by identity
        for module in model.modules():
            module.register_forward_hook(self._look)

    def _count(self, module: nn.Module, args: Any, output: Any) -> None:
        self.root_calls += module is self._model

    def _still_on(self) -> int:
        return sum(hook is self._look for m in self._model.modules() for hook in m._forward_hooks.values())

    def lost(self) -> int:
        """Return how many of these hooks are gone."""
        return len(list(self._model.modules())) - self._still_on()

    def others(self) -> int:
        """Return how many other hooks are registered: those of the answer."""
        return module_hooks(self._model) - self._still_on()


def is_cut(out: torch.Tensor) -> bool:
    """Check whether a hook detached this output of a model: grad mode is on, but it requires no gradient."""
    return torch.is_grad_enabled() and not out.requires_grad
