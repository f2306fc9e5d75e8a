"""A small graph for the probes of lesson 02, two hooks on one leaf, and what a hook hands on."""

import contextlib
import math
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Draw, hooks_on, remove_handle
from hookedu.exercises.tools import copies, noted, whole


class Case(NamedTuple):
    """Values for y = k * x and loss = (w * y).sum(): the gradient of y is w, that of x is k * w."""

    x: torch.Tensor
    k: float
    w: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case of two to four whole numbers; then fractions, one of them infinite, in other shapes.

    The fractions have more digits than float16 holds, and k is small: the greatest number there is, in place of the
    infinite one, would stay finite. The last case is in float64.
    """
    shape = ((rng.randint(2, 4),), (), (2, 2), (1, 3, 1))[rng.turn]
    x, w = (whole(rng, math.prod(shape)) for _ in range(2))
    w[0] = -w[0].abs()
    k = float(rng.randint(2, 5))
    if rng.turn:
        w, k = w / 4 + 2**-12, k / 32
        w[1:2] = torch.inf
    if rng.turn == 3:
        x, w = x.double(), w.double()
    return Case(x.reshape(shape).requires_grad_(), k, w.reshape(shape))


def two_lists(watch: Any, x: torch.Tensor, w: torch.Tensor) -> dict[str, Any]:
    """Observe what two lists hold for one leaf after a backward pass that adds to the ones in its .grad.

    `no_more` tells whether there are no more hooks after the second call than after the first.
    """
    leaf = copies(x).requires_grad_()
    leaf.grad = torch.ones_like(leaf)
    leaf.register_hook(lambda grad: None)  # a third party's
    one, two = [], []
    handles = [watch(leaf, one)]
    hooks = hooks_on(leaf)
    handles.append(watch(leaf, two))
    no_more = hooks_on(leaf) <= hooks
    (w * leaf).sum().backward()
    for handle in handles:
        remove_handle(handle)
    return {"two": [copies(one), copies(two)], "no_more": no_more}


def later_passes(watch: Any, w: torch.Tensor) -> dict[str, Any]:
    """Observe what was seen of a leaf without a .grad when three backward passes are over.

    PyTorch makes the tensor that a hook returns the .grad of the leaf, if nobody else holds it, and adds the next gradient
    to it in place: what shares memory with it changes. "gave" tells whether a hook returned something.
    """
    leaf, seen = torch.ones_like(w, requires_grad=True), []
    leaf.register_hook(lambda grad: None)  # a third party's
    handle = watch(leaf, seen)
    gave = noted(leaf)
    for factor in (1, 2, 3):
        (factor * w * leaf).sum().backward()
    remove_handle(handle)
    return {"later": copies(seen), "gave": any(gave)}


def cuts_graph(watch: Any, w: torch.Tensor) -> bool:
    """Check whether the gradient that flows on holds no graph although backward builds one."""
    leaf, handed_on = torch.ones_like(w, requires_grad=True), []
    y = 2 * leaf
    y.register_hook(lambda grad: None)  # a third party's
    handle = watch(y, [])
    last = y.register_hook(handed_on.append)
    with contextlib.suppress(Exception):  # of an answer that is at odds with such a gradient
        torch.autograd.grad((w * y * y).sum(), leaf, create_graph=True)
    last.remove()
    remove_handle(handle)
    return any(not grad.requires_grad for grad in handed_on)
