"""A small graph, criteria and mistakes shared by the exercises of lesson 02."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import same, whole
from hookedu.language import Text


def case(rng: random.Random) -> tuple[torch.Tensor, float, torch.Tensor]:
    """Return (x, k, w) for y = k * x and loss = (w * y).sum(): y's gradient is w, that of x is k * w."""
    n = rng.randint(2, 4)
    return whole(rng, n).requires_grad_(), float(rng.randint(2, 5)), whole(rng, n)


def given_line(x: torch.Tensor, k: float, w: torch.Tensor) -> str:
    """Return the case as a message shows it."""
    return f"x = {show(x)}; y = {k:g} * x; loss = ({show(w)} * y).sum()"


def unchanged(given: str, got: Any, expected: torch.Tensor, mistake: str = "changes_gradient") -> Criterion:
    """Require that x.grad is what it is without hooks: watching must not change gradients."""
    return Criterion(
        "unchanged",
        same(got, expected),
        essential=True,
        given=given,
        expected=f"x.grad == {show(expected)}",
        got=f"x.grad == {show(got)}",
        mistake=mistake,
    )


def left_alone(given: str, switched: bool) -> Criterion:
    """Require that no requires_grad was switched on: watching must not change the tensors either."""
    return Criterion(
        "left_alone",
        not switched,
        essential=True,
        given=given,
        expected="requires_grad == False",
        got=f"requires_grad == {switched}",
        mistake="switches_on",
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
HOOKS_EVERYTHING = Mistake(
    "hooks_everything",
    Text(
        zh="有一个张量的 `requires_grad` 是 `False`，它永远不会有梯度，也不接受钩子。遇到这样的就跳过。",
        en="One of the tensors has `requires_grad=False`: it never gets a gradient and takes no hook. Skip such tensors.",
    ),
    raises=r"cannot register a hook on a tensor that doesn't require gradient",
)
SKIPS_LEAVES = Mistake(
    "skips_leaves",
    Text(
        zh="叶子也接受钩子；要跳过的只是 `requires_grad` 为 `False` 的。",
        en="Leaves accept hooks too; skip only `requires_grad=False`.",
    ),
    fails="sees",
)
SWITCHES_ON = Mistake(
    "switches_on",
    Text(
        zh="你打开了一个张量的 `requires_grad`，那是别人的设定（比如冻结的权重）。这样的张量跳过就好。",
        en="You switched `requires_grad` on, which is not yours to set (it may be a frozen weight). Skip such a tensor instead.",
    ),
    fails="left_alone",
)
