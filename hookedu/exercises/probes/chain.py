"""A model with a running order of its own, in the state in which a model may be found."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import hooks_on
from hookedu.exercises.tools import module_hooks, rebuilt, someones


class Chain(nn.ModuleDict):
    """A model that runs its children in the order `run`, not in that of their definition; one may run twice.

    In eval mode it doubles what comes out: like a model with dropout, it is another function in that mode. The output of
    the child `doubled` it doubles itself, without a module.
    """

    def __init__(self, children: Mapping[str, nn.Module], run: Sequence[str], doubled: str = "") -> None:
        super().__init__(children)
        self.run, self.doubled = run, doubled
        self.out: torch.Tensor | None = None  # output of the last call of a model that is `lived_in`
        self.ran_in_training: bool | None = None
        self.was_training = True  # the mode in which the answer finds it
        self.outputs: list[torch.Tensor] = []  # of the children
        self.hooked = (
            False  # whether a tensor hook was on an output of a child as soon as its forward hooks had run
        )
        self.passes = 0  # how often backward went through an output

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.run:
            x = self[name](x)
            self.outputs.append(x)
            self.hooked |= isinstance(x, torch.Tensor) and hooks_on(x) > 0
            x = 2 * x if name == self.doubled else x
        x = x if self.training else 2 * x
        if x.requires_grad:
            x.register_hook(self._count)
        return x

    def _count(self, grad: torch.Tensor) -> None:
        self.passes += 1


def lived_in(model: Chain, frozen: str, still: str, trained: bool = True) -> Chain:
    """Return the model with hooks of others, old gradients, a frozen parameter, and one child in eval mode.

    Where it is not `trained`, that child alone is in training mode.
    """
    for module in model.modules():
        module.register_forward_hook(_ignore)
    model.register_forward_hook(_note)
    for name, param in model.named_parameters():
        param.grad = torch.ones_like(param)
        param.register_hook(_ignore)
        param.requires_grad_(name != frozen)
    model.train(trained)[still].train(not trained)
    model.was_training = trained
    return model


@someones
def _ignore(*args: Any) -> None:
    pass


def _note(model: Any, args: tuple, output: torch.Tensor) -> None:
    model.out, model.ran_in_training = output, model.training


def parameter_hooks(parameters: Iterable[nn.Parameter]) -> int:
    """Count the hooks on parameters, those after accumulation included."""
    return sum(hooks_on(p) + len(p._post_accumulate_grad_hooks or ()) for p in parameters)


def hooks_of_modules(model: nn.Module) -> int:
    """Count the forward and backward hooks of all modules of a model."""
    backward = sum(len(m._backward_hooks) + len(m._backward_pre_hooks) for m in model.modules())
    return module_hooks(model) + backward


def plain(value: Any) -> Any:
    """Return dicts, lists, tuples and floats as the built-in types: of a subclass, `encode` would keep only the name."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return rebuilt(value, map(plain, value))
    return float(value) if isinstance(value, float) else value
