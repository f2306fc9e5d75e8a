"""A model with a running order of its own, and criteria and mistakes shared by exercises of lesson 10."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.observation import Opaque
from hookedu.exercises.tools import module_hooks
from hookedu.language import Text


class Interruption(Exception):
    """Raised by a model in its forward, as running out of memory would."""


class Chain(nn.Module):
    """A model that runs its children in the order `run`, not in the order of their definition."""

    def __init__(self, children: Mapping[str, nn.Module], run: Sequence[str], broken: bool = False) -> None:
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)
        self.run, self.broken = run, broken
        self.out: torch.Tensor | None = None  # output of the last run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.run:
            x = self.get_submodule(name)(x)
        self.out = x
        if self.broken:
            raise Interruption
        return x


def backward_hooks(model: nn.Module) -> int:
    """Count the forward, backward and parameter hooks of a model."""
    on_modules = sum(len(m._backward_hooks) + len(m._backward_pre_hooks) for m in model.modules())
    on_parameters = sum(
        len(p._backward_hooks or ()) + len(p._post_accumulate_grad_hooks or ()) for p in model.parameters()
    )
    return module_hooks(model) + on_modules + on_parameters


def interrupted(answer: Callable[..., Any], broken: Chain, *args: Any) -> dict[str, Any]:
    """Report how many hooks an answer leaves on a broken chain, and whether its exception got through."""
    try:
        answer(broken, *args)
        passed_on = False
    except Interruption:
        passed_on = True
    return {"left_by_error": backward_hooks(broken), "passed_on": passed_on}


def clean_after_error(given: str, saw: dict[str, Any]) -> Criterion:
    """Require that the hooks are removed when the model raises, and that the exception gets through."""
    left, passed_on = saw["left_by_error"], saw["passed_on"] is True
    came = Text(zh="异常传了出来，留下 {n} 个钩子", en="the exception came through, {n} hooks left on")
    swallowed = Text(
        zh="异常没有传出来，留下 {n} 个钩子", en="the exception did not come through, {n} hooks left on"
    )
    return Criterion(
        "clean_after_error",
        left == 0 and passed_on,
        points=1,
        given=given,
        expected=came.format(n=0),
        got=(came if passed_on else swallowed).format(n=left),
        mistake="no_finally" if left else "swallows",
    )


def number_close(got: Any, expected: float) -> bool:
    """Check whether `got` is a Python number that equals `expected` but for rounding."""
    return type(got) in (int, float) and math.isclose(got, expected, rel_tol=1e-4, abs_tol=1e-6)


def rounded(value: Any) -> Any:
    """Round floats to the digits that a message shows, also inside lists, dicts and scalar tensors."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return Opaque(f"tensor({value.item():g})")
    return float(f"{value:.4g}") if isinstance(value, float) else value


LEAVES_HOOKS = Mistake(
    "leaves_hooks",
    Text(
        zh="结果对了，可是钩子还挂着，下次运行还会触发。把句柄收进列表，最后逐个 `handle.remove()`。",
        en="The result is right, but hooks are still on and will fire next time. Collect the handles and call "
        "`handle.remove()` for each.",
    ),
    fails="clean",
)
NO_FINALLY = Mistake(
    "no_finally",
    Text(
        zh="模型抛出了异常，取下钩子的代码没有执行。把它放进 `finally`。",
        en="The model raised, and your removal never ran. Put it into a `finally`.",
    ),
    fails="clean_after_error",
)
SWALLOWS = Mistake(
    "swallows",
    Text(
        zh="模型的异常被你吞掉了，调用者还以为一切正常。不要 `except`：`finally` 取下钩子，异常自己会往外走。",
        en="You swallowed the model's exception, and your caller believes that all went well. No `except`: a `finally` takes the "
        "hooks off and lets it through.",
    ),
    fails="clean_after_error",
)
RETURNS_NOTHING = Mistake(
    "returns_nothing",
    Text(
        zh="你的函数返回了 `None`：最后少了 `return`。",
        en="Your function returned `None`: its `return` is missing.",
    ),
)
