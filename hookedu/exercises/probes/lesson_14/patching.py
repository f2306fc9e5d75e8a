"""The model of 14.3 and 14.4, and what is observed while an answer patches it: the hooks and the kept outputs of others."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import Stopped
from hookedu.exercises.probes.lesson_14.shared import Sizes, make_model
from hookedu.exercises.tools import module_hooks
from hookedu.models.stories import StoryModel


def make_mixed(sizes: Sizes) -> StoryModel:
    """Return a model with parts in different modes, a frozen parameter, and a gradient of before.

    Whoever changes one of these and does not restore it part by part is found out.
    """
    model = make_model(sizes)
    model.blocks[0].eval()
    model.position.weight.requires_grad_(False)
    model.norm.bias.grad = torch.ones_like(model.norm.bias)
    model.unembed.weight.register_hook(lambda grad: None)  # somebody else's
    return model


def keep_outputs(model: StoryModel) -> Callable[[], int]:
    """Let somebody else's hooks, which run first, keep what every block puts out; return a count of what has changed."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        kept.append((output, output.detach().clone()))

    for block in model.blocks:
        block.register_forward_hook(keep)
    return lambda: sum(not torch.equal(*pair) for pair in kept)


class _Failing:
    """In place of a `forward`: raise an exception the first time."""

    def __init__(self, module: nn.Module, error: BaseException) -> None:
        self.forward, self.error = module.forward, error
        module.forward = self

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        error, self.error = self.error, None
        if error:
            raise error
        return self.forward(x)


def after_error(answer: Callable[..., Any], sizes: Sizes, *args: Any) -> dict[str, Any]:
    """Observe calls whose first run of the model fails: before any block, in the last, as by somebody who interrupts it, or at its end.

    `left_after_error` is the number of hooks that are left on, `swallowed` whether a RuntimeError did not come through.
    """
    left, swallowed = 0, False
    failures: tuple[tuple[str, BaseException], ...] = (
        ("embed", Stopped("interrupted")),
        (f"blocks.{sizes.depth - 1}.mlp", Stopped("interrupted")),
        ("unembed", RuntimeError("out of memory")),
    )
    for name, error in failures:
        model, swallowed = make_mixed(sizes), False
        _Failing(model.get_submodule(name), error)
        before = module_hooks(model)
        with contextlib.suppress(Exception, Stopped):
            answer(model, *args)
            swallowed = True
        left = max(left, module_hooks(model) - before)
    return {"left_after_error": left, "swallowed": swallowed}
