"""What the exercises of lesson 02 share: one small graph, one criterion, and mistakes that fit several."""

import random
from typing import Any

import torch

from hookedu.exercises.model import Criterion, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import same, whole
from hookedu.language import Text


def case(rng: random.Random) -> tuple[torch.Tensor, float, torch.Tensor]:
    """(x, k, w) for y = k * x and loss = (w * y).sum(): the gradient of y is w, that of x is k * w."""
    n = rng.randint(2, 4)
    return whole(rng, n).requires_grad_(), float(rng.randint(2, 5)), whole(rng, n)


def given_line(x: torch.Tensor, k: float, w: torch.Tensor) -> str:
    """The case as a message shows it."""
    return f"x = {show(x)}; y = {k:g} * x; loss = ({show(w)} * y).sum()"


def unchanged(given: str, got: Any, expected: torch.Tensor, mistake: str = "changes_gradient") -> Criterion:
    """Watching must not change what is watched: x.grad is what it is without any hook."""
    return Criterion(
        *("unchanged", same(got, expected)),
        essential=True,
        given=given,
        expected=f"x.grad == {show(expected)}",
        got=f"x.grad == {show(got)}",
        mistake=mistake,
    )


CHANGES_GRADIENT = Mistake(
    "changes_gradient",
    Text(
        zh="你的钩子改动了梯度：它要么返回了一个张量，要么就地修改了 `grad`。只看不改的钩子应当什么也不返回。",
        en="Your hook changed the gradient: it returned a tensor, or modified `grad` in place. "
        "A hook that only watches returns nothing.",
    ),
    fails="unchanged",
)
NO_HANDLE = Mistake(
    "no_handle",
    Text(
        zh="没有把句柄交出来：`y.register_hook(...)` 会返回一个句柄，少了它，调用者就没有办法取下这个钩子。",
        en="The handle got lost: `y.register_hook(...)` gives one back, and without it your caller "
        "has no way to take the hook off.",
    ),
    fails="handle",
)
