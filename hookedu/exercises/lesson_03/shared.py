"""Two paths that meet in an addition, and the criteria and mistakes shared by the exercises of lesson 03.

The addition passes the same gradient tensor to both paths. The neighbouring path is built first, so backward reaches it
last: a hook that modifies the gradient in place has corrupted the neighbour's gradient by then.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.shared import HANDLE, hands_over
from hookedu.exercises.tools import same, whole
from hookedu.language import Text


@dataclass(frozen=True)
class Paths:
    """The graph skip = 2 * s; y = k * x; loss = (w * (skip + y)).sum().

    Without hooks, the gradient of y is w, that of x is k * w and that of s is 2 * w.
    """

    s: torch.Tensor
    x: torch.Tensor
    k: float
    w: torch.Tensor

    @classmethod
    def make(cls, rng: random.Random, n: int | None = None) -> "Paths":
        """Return a random case whose tensors hold n whole numbers, by default 2 to 4."""
        n = n or rng.randint(2, 4)
        s, x = whole(rng, n).requires_grad_(), whole(rng, n).requires_grad_()
        return cls(s, x, float(rng.randint(2, 5)), whole(rng, n))

    def run(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clear the gradients of the leaves and return newly computed (skip, y)."""
        self.s.grad = self.x.grad = None
        skip = 2 * self.s
        return skip, self.k * self.x

    @property
    def given(self) -> str:
        """The graph as a message shows it."""
        return f"skip = 2 * s; y = {self.k:g} * x; loss = ({show(self.w)} * (skip + y)).sum()"


def neighbour(given: str, got: Any, expected: torch.Tensor) -> Criterion:
    """Require that the gradient on the other path is what it is without hooks."""
    return Criterion(
        "neighbour",
        same(got, expected),
        essential=True,
        given=given,
        expected=f"s.grad == {show(expected)}",
        got=f"s.grad == {show(got)}",
        mistake="in_place",
    )


def hands_over_all(call: str, handle: Any, after_removal: Any, plain: torch.Tensor) -> Criterion:
    """Require that `call` returns a handle, and that x.grad is `plain` after its removal."""
    criterion = hands_over(call, handle, same(after_removal, plain))
    if handle != HANDLE or criterion.passed:
        return criterion
    return replace(
        criterion,
        given=f"handle = {call}; handle.remove(); loss.backward()",
        expected=f"x.grad == {show(plain)}",
        got=f"x.grad == {show(after_removal)}",
        mistake="still_at_work",
    )


FORGOT_RETURN = Mistake(
    "forgot_return",
    Text(
        zh="钩子触发了，梯度却和原来一样：算出来的新张量没有交出去。在最后写 `return`。",
        en="The hook fired, yet the gradient is what it was: the new tensor was computed and never handed over. "
        "End with a `return`.",
    ),
)
NOT_REGISTERED = Mistake(
    "not_registered",
    Text(
        zh="没有钩子挂到 `y` 上，梯度也就没有变：写好函数之后还要 `y.register_hook(...)`。",
        en="There is no hook on `y`, so nothing changed: after writing the function, register it with `y.register_hook(...)`.",
    ),
)
WRONG_TENSOR = Mistake(
    "wrong_tensor",
    Text(
        zh="钩子挂在了另一个张量上（比如由 `y` 算出的一个新张量），损失并不经过它。请挂在 `y` 本身上。",
        en="Your hook is on another tensor, such as a new one computed from `y`, which the loss never passes. "
        "Register it on `y` itself.",
    ),
)
IN_PLACE = Mistake(
    "in_place",
    Text(
        zh="`y` 的梯度对了，邻居的却坏了：加法把同一个张量交给了两条路，而你就地改了它"
        "（`mul_`、`*=`、`grad[...] = ...` 都算）。请返回一个新张量，例如 `grad * 2`。",
        en="The gradient of `y` is right and its neighbour's is spoilt: the addition hands one tensor to both paths, "
        "and you changed it in place (`mul_`, `*=` and `grad[...] = ...` all do). Return a new tensor, such as `grad * 2`.",
    ),
    fails="neighbour",
)
STILL_AT_WORK = Mistake(
    "still_at_work",
    Text(
        zh="`remove()` 之后还有钩子在起作用：只挂一个，并返回它的句柄。",
        en="After `remove()` a hook is still at work: register one only, and return its handle.",
    ),
    fails="handle",
)
READS_DOT_GRAD = Mistake(
    "reads_dot_grad",
    Text(
        zh="钩子里用了 `y.grad`，可 `y` 不是叶子，它是 `None`。要用的是钩子的参数 `grad`。",
        en="Your hook uses `y.grad`, but `y` is no leaf and that is `None`. Use the hook's argument `grad`.",
    ),
    raises=r"unsupported operand type.*NoneType|'NoneType' object has no attribute",
)
RETURNS_NO_TENSOR = Mistake(
    "returns_no_tensor",
    Text(
        zh="钩子返回的不是张量（而是元组、列表或一个数）。它只能返回一个和 `grad` 形状相同的张量，或者 `None`。",
        en="Your hook returned something that is no tensor (a tuple, a list, a number). It may return a tensor of the "
        "same shape as `grad`, or `None`.",
    ),
    raises=r"expected Variable, but hook returned",
)
OTHER_SHAPE = Mistake(
    "other_shape",
    Text(
        zh="钩子返回的张量和 `grad` 形状不同，PyTorch 拒绝接受：每个元素都要有自己的梯度。",
        en="Your hook returned a tensor of another shape than `grad`, and PyTorch refuses it: every element needs a gradient.",
    ),
    raises=r"has changed the size of value",
)
