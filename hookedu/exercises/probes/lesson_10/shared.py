"""A model with a running order of its own, and what answers leave on it."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Interruption, hooks_on
from hookedu.exercises.tools import module_hooks


class Chain(nn.ModuleDict):
    """A model that runs its children in the order `run`, not in that of their definition; a broken one then raises."""

    def __init__(self, children: Mapping[str, nn.Module], run: Sequence[str], broken: bool = False) -> None:
        super().__init__(children)
        self.run, self.broken = run, broken
        self.out: torch.Tensor | None = None  # output of the last run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.run:
            x = self[name](x)
        self.out = x
        if self.broken:
            raise Interruption
        return x


def parameter_hooks(parameters: Iterable[nn.Parameter]) -> int:
    """Count the hooks on parameters, those after accumulation included."""
    return sum(hooks_on(p) + len(p._post_accumulate_grad_hooks or ()) for p in parameters)


def all_hooks(model: nn.Module) -> int:
    """Count the forward, backward and parameter hooks of a model."""
    backward = sum(len(m._backward_hooks) + len(m._backward_pre_hooks) for m in model.modules())
    return module_hooks(model) + backward + parameter_hooks(model.parameters())


def interrupted(answer: Callable[..., Any], broken: Chain, *args: Any) -> dict[str, Any]:
    """Report how many hooks an answer leaves on a broken chain, and whether its exception got through."""
    passed_on = True
    with contextlib.suppress(Interruption):
        answer(broken, *args)
        passed_on = False
    return {"left_by_error": all_hooks(broken), "passed_on": passed_on}
