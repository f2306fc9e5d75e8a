"""Two paths that meet in an addition, for the probes of lesson 03.

The addition passes the same gradient tensor to both paths. The neighbouring path is built first, so backward reaches it
last: a hook that modifies the gradient in place has corrupted the neighbour's gradient by then.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Draw, remove_handle
from hookedu.exercises.tools import copies, noted, whole

ALL = slice(None)
_SHAPES = (None, (2, 3), (2, 1, 3), (), ())  # by turn; a vector in turn 0


def transposed(values: torch.Tensor) -> torch.Tensor:
    """Return the same values in another order in memory: with more than one dimension, they are not contiguous."""
    return values.transpose(0, -1).contiguous().transpose(0, -1) if values.dim() else values


def somebodys(_: torch.Tensor) -> None:
    """Look at a gradient: the hook of somebody else, which is on y before the answer is called."""


def own_hooks(tensor: torch.Tensor) -> int:
    """Return the number of hooks on a tensor that are not `somebodys`."""
    return sum(inspect.unwrap(hook) is not somebodys for hook in (tensor._backward_hooks or {}).values())


class Paths(NamedTuple):
    """The graph skip = 2 * s; y = k * x; loss = (w * (skip + y)).sum(), and w of a further backward pass.

    Without hooks, the gradient of y is w, that of x is k * w and that of s is 2 * w.
    """

    s: torch.Tensor
    x: torch.Tensor
    k: float
    w: torch.Tensor
    other: torch.Tensor

    @classmethod
    def make(cls, rng: Draw, shape: tuple[int, ...] | None = None) -> "Paths":
        """Return a case of whole numbers; w has both signs, and the shape depends on the turn.

        In turn 1 it is float16, which becomes float32 with any float32 tensor, and the further w holds an infinity, in
        turn 3 float64, and the further w is tiny. In turns 2 and 3 a small power of two is added to w, which every smaller
        dtype would lose. In turn 4 all are single numbers of float32. A w of several dimensions is not contiguous.
        """
        if shape is None:
            shape = _SHAPES[rng.turn]
        if shape is None:
            shape = (max(3, rng.randint(2, 4)),)
        n = math.prod(shape)
        s, x, k, w = whole(rng, n), whole(rng, n), float(rng.randint(2, 5)), whole(rng, n)
        w[:2] = w[:2].abs() * torch.tensor([1, -1])[:n]
        dtype = {1: torch.float16, 3: torch.float64}.get(rng.turn, torch.float32)
        s, x, w = (values.reshape(shape).to(dtype) for values in (s, x, w))
        w += {2: 2.0**-12, 3: 2.0**-30}.get(rng.turn, 0)
        other = -3 * w * (2.0**-40 if rng.turn == 3 else 1)
        if rng.turn == 1:
            other.view(-1)[0] = torch.inf
        return cls(s.requires_grad_(), x.requires_grad_(), k, transposed(w), transposed(other))

    def double(self) -> "Paths":
        """Return the same leaves and gradients in float64."""
        s, x = (leaf.detach().double().requires_grad_() for leaf in (self.s, self.x))
        return Paths(s, x, self.k, self.w.double(), self.other.double())

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clear the gradients of the leaves and return newly computed (skip, y)."""
        self.s.grad = self.x.grad = None
        return 2 * self.s, self.k * self.x


class Run:
    """The graph of some paths with the hooks that `register(y)` leaves on y, for several backward passes.

    Attributes
    ----------
    returned : object
        What `register` returned: a handle or a list of handles.
    """

    def __init__(self, paths: Paths, register: Callable[[torch.Tensor], Any]) -> None:
        self._paths = paths
        skip, self._y = paths.forward()
        self._y.register_hook(somebodys)
        self.returned = copies(register(self._y))  # a list that outlives the call would change
        several = isinstance(self.returned, (list, tuple))
        self._handles = list(self.returned) if several else [self.returned]
        self._hooks, self._ran_backward = own_hooks(self._y), paths.x.grad is not None
        self._gave = noted(self._y)
        self._sum = skip + self._y

    def backward(self, w: torch.Tensor) -> list[Any]:
        """Run one backward pass with this w and return the gradients of x and s."""
        leaves = self._paths.x, self._paths.s
        (w * self._sum).sum().backward(retain_graph=True)
        gradients = [copies(leaf.grad) for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        return gradients

    def seen(self) -> dict[str, Any]:
        """Return what was seen of the hooks until now.

        "hooks" were on y after registration, "kept" are on it now. "of_y" tells whether a handle belongs to y, "gave"
        whether the hooks returned something, each time that one ran.
        """
        own = self._y._backward_hooks
        refs = [getattr(handle, "hooks_dict_ref", lambda: None)() for handle in self._handles]
        return {
            "returned": self.returned,
            "hooks": self._hooks,
            "kept": own_hooks(self._y),
            "of_y": any(ref is own for ref in refs if ref is not None),
            "gave": list(self._gave),
            "ran_backward": self._ran_backward,
        }

    def remove(self, part: slice = ALL) -> None:
        """Remove the hooks of the handles in this part of their list."""
        for handle in self._handles[part]:
            remove_handle(handle)


def first_of_two(paths: Paths, *registers: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    """Return the gradient of x through the first of two graphs, after each of the two calls left its hooks on one."""
    runs = [Run(paths, register) for register in registers]
    x_grad, _ = runs[0].backward(paths.w)
    for run in runs:
        run.remove()
    return x_grad


def asked(
    paths: Paths, first: Callable[[torch.Tensor], Any], second: Callable[[torch.Tensor], Any]
) -> dict[str, Any]:
    """Return what autograd.grad gives for a leaf y: for w and the other w after one call, for w after two calls.

    All three are read at the end: a hook must not overwrite what an earlier pass gave out. "one_buffer" tells whether
    two of them share memory.
    """
    y = copies(paths.x).requires_grad_()
    y.register_hook(somebodys)

    def ask(w: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((w * y).sum(), y)[0]

    handles = [first(y)]
    gradients = [ask(paths.w), ask(paths.other)]
    handles.append(second(y))
    gradients.append(ask(paths.w))
    for returned in handles:
        for handle in returned if isinstance(returned, (list, tuple)) else [returned]:
            remove_handle(handle)
    return {"asked": copies(gradients), "one_buffer": shares_memory(gradients)}


def shares_memory(tensors: list[torch.Tensor]) -> bool:
    """Check whether two of these tensors begin at one place in memory."""
    return len({tensor.data_ptr() for tensor in tensors}) < len(tensors)
