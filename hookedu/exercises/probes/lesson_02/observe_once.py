"""What is observed of 02.3, `observe_once(y, seen)`: several backward passes, two tensors, two lists, an early removal."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_02 import shared
from hookedu.exercises.probes.lesson_02.shared import later_passes, two_lists
from hookedu.exercises.probing import Draw, Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """A small graph, and an item of the caller that `seen` already holds; `shared`: a second tensor goes to the same list."""

    x: torch.Tensor
    k: float
    w: torch.Tensor
    before: torch.Tensor
    shared: bool


def make_case(rng: Draw) -> Case:
    """Return the small graph of the lesson and one more tensor; in one case all gradients are 0, in one `seen` is shared."""
    x, k, w = shared.make_case(rng)
    return Case(x, k, torch.zeros_like(w) if rng.turn == 2 else w, whole(rng, 2), rng.turn == 1)


def observe(observe_once: Any, case: Case) -> dict[str, Any]:
    """Observe two tensors, of which one has hooks of a third party, before and after; run backward from each; cancel on a third."""
    x, k, w, before, shared = case
    y, seen, neighbour = k * x, [before], []
    y.register_hook(neighbour.append)
    handle = observe_once(y, seen)
    table = getattr(handle, "hooks_dict_ref", lambda: y._backward_hooks)()  # that of several hooks has none
    early, early_grad, hung = copies(seen), copies(x.grad), hooks_on(y) > 1
    later = y.register_hook(neighbour.append)

    z, seen_z = x * x, seen if shared else []  # two tensors at a time; the handle of the second is dropped
    observe_once(z, seen_z)
    hung_z = hooks_on(z)
    (w * y).sum().backward(retain_graph=True)
    first, hooks, lost, x_grad = copies(seen), hooks_on(y) - 2, hung_z > hooks_on(z), [copies(x.grad)]
    (2 * w * y).sum().backward()
    both, x_grad, start = copies(seen), [*x_grad, copies(x.grad)], len(seen_z)
    (w * z).sum().backward()
    other = copies(seen_z[start:])

    u, seen_u = k * x, []  # removed before any backward: must stay silent
    remove_handle(observe_once(u, seen_u))
    cancelled = hooks_on(u)
    (w * u).sum().backward()
    later.remove()
    remove_handle(handle)
    on_leaf = two_lists(observe_once, x, w) | later_passes(observe_once, w)
    return on_leaf | {
        "early": early,
        "early_grad": early_grad,
        "hung": hung,
        "elsewhere": table is not y._backward_hooks,
        "lost": lost,
        "first": first,
        "hooks": hooks,
        "both": both,
        "handle": handle,
        "neighbour": len(neighbour),
        "x_grad": x_grad,
        "other": other,
        "cancelled": cancelled + len(seen_u),
    }


PROBE = Probe("02.3", "observe_once", make_case, observe, cases=4, changes=(1,), leaves=(HANDLES,))
