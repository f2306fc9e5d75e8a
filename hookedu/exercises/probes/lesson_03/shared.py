"""Two paths that meet in an addition, for the probes of lesson 03.

The addition passes the same gradient tensor to both paths. The neighbouring path is built first, so backward reaches it
last: a hook that modifies the gradient in place has corrupted the neighbour's gradient by then.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.tools import copies, whole

NONE, ALL = slice(0), slice(None)


class Paths(NamedTuple):
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

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clear the gradients of the leaves and return newly computed (skip, y)."""
        self.s.grad = self.x.grad = None
        return 2 * self.s, self.k * self.x

    def observe(self, register: Callable[[torch.Tensor], Any], off: slice = NONE) -> dict[str, Any]:
        """Observe one backward pass after `register(y)`, which returns a handle or a list of handles.

        The hooks of the handles in the part `off` of that list are removed before the pass.
        """
        skip, y = self.forward()
        returned = register(y)
        hooks, ran_backward = hooks_on(y), self.x.grad is not None
        for handle in (returned if isinstance(returned, (list, tuple)) else [returned])[off]:
            remove_handle(handle)
        (self.w * (skip + y)).sum().backward()
        return {
            "returned": returned,
            "hooks": hooks,
            "ran_backward": ran_backward,
            "x_grad": copies(self.x.grad),
            "s_grad": copies(self.s.grad),
        }
