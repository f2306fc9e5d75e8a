"""What is observed of 02.3, `observe_once(y, seen)`: two backward passes, a second tensor, and an early removal."""

import random
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_02 import shared
from hookedu.exercises.probing import Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """A small graph, and an item of the caller that `seen` already holds."""

    x: torch.Tensor
    k: float
    w: torch.Tensor
    before: torch.Tensor


def make_case(rng: random.Random) -> Case:
    """Return the small graph of the lesson and one more tensor."""
    return Case(*shared.make_case(rng), whole(rng, 2))


def observe(observe_once: Any, case: Case) -> dict[str, Any]:
    """Run backward twice beside a hook of a third party, which must keep working; then on two further tensors."""
    x, k, w, before = case
    y, seen, neighbour = k * x, [before], []
    y.register_hook(neighbour.append)
    handle = observe_once(y, seen)
    early, hung = copies(seen), hooks_on(y) == 2
    (w * y).sum().backward(retain_graph=True)
    first, hooks = copies(seen), hooks_on(y) - 1
    (2 * w * y).sum().backward()
    both, x_grad = copies(seen), copies(x.grad)

    z, seen_z = x * x, []  # a second tensor must be observed too
    observe_once(z, seen_z)
    (w * z).sum().backward()
    u, seen_u = k * x, []  # removed before any backward: must stay silent
    remove_handle(observe_once(u, seen_u))
    cancelled = hooks_on(u)
    (w * u).sum().backward()
    return {
        "early": early,
        "hung": hung,
        "first": first,
        "hooks": hooks,
        "both": both,
        "handle": handle,
        "neighbour": len(neighbour),
        "x_grad": x_grad,
        "other": copies(seen_z),
        "cancelled": cancelled + len(seen_u),
    }


PROBE = Probe("02.3", "observe_once", make_case, observe)
