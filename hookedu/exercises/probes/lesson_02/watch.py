"""What is observed of 02.1, `watch(y, seen)`: several backward passes, one more without the hook, and two lists for a leaf."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_02 import shared
from hookedu.exercises.probing import Draw, Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """A small graph; what `seen` holds before; and by how much the loss counts in each backward pass."""

    x: torch.Tensor
    k: float
    w: torch.Tensor
    before: list[torch.Tensor]
    factors: tuple[int, ...]


def make_case(rng: Draw) -> Case:
    """Return the small graph of the lesson; after the first case `seen` is not empty, and a gradient comes twice.

    In the second case, in which none is infinite, a gradient is 0; in the last, y is x itself, a leaf, and k is 1.
    """
    before, factors = ([whole(rng, 2)], (1, 1, 3)) if rng.turn else ([], (1, 2))
    factors = (1, 1, 0, 3) if rng.turn == 1 else factors
    x, k, w = shared.make_case(rng)
    return Case(x, 1.0 if rng.turn == 3 else k, w, before, factors)


def observe(watch: Any, case: Case) -> dict[str, Any]:
    """Watch y beside a hook of a third party; run backward, remove the hook, and run backward once more."""
    x, k, w, before, factors = case
    y, seen = x if k == 1 else k * x, list(before)
    y.register_hook(lambda grad: None)
    handle = watch(y, seen)
    report = {"early": copies(seen), "early_grad": copies(x.grad), "hooks": hooks_on(y) - 1}
    table = getattr(handle, "hooks_dict_ref", lambda: y._backward_hooks)()  # that of several hooks has none
    gradients = {factor: factor * w + 0 for factor in factors}  # no -0
    for factor in factors:
        y.backward(gradients[factor], retain_graph=True)
    kept, x_grad = copies(seen), copies(x.grad)
    remove_handle(handle)
    y.backward(w)
    report |= shared.two_lists(watch, x, w) | shared.later_passes(watch, w)
    return report | {
        "seen": kept,
        "x_grad": x_grad,
        "handle": handle,
        "elsewhere": table is not y._backward_hooks,
        "after_removal": len(seen) - len(kept),
        "piece": _pieces(watch, w),
        "cut": shared.cuts_graph(watch, w),
    }


def _pieces(watch: Any, w: torch.Tensor) -> Any:
    """Return what is seen of the second of two tensors that come out of one operation, both of which backward uses."""
    seen: list[Any] = []
    first, second = torch.stack([torch.zeros_like(w)] * 2).requires_grad_().unbind()
    second.register_hook(lambda grad: None)  # a third party's
    handle = watch(second, seen)
    ((w - 1) * first + w * second).sum().backward()
    remove_handle(handle)
    return copies(seen)


PROBE = Probe("02.1", "watch", make_case, observe, cases=4, changes=(1,), leaves=(HANDLES,))
