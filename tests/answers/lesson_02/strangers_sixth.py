"""What the sixth strangers tried on lesson 02: wrong answers that had been accepted, or whose messages were untrue."""

from contextlib import contextmanager
from functools import partial

import torch
from torch.autograd.graph import register_multi_grad_hook
from torch.utils.weak import WeakIdKeyDictionary

from tests.answers import edited, mistake, unnamed


@mistake("02.1", "shared_seen")
def watch(y, seen):
    watch.seen = seen
    return y.register_hook(lambda grad: watch.seen.append(grad))


@unnamed("02.1", "two_at_a_time")
def watch(y, seen, known=WeakIdKeyDictionary()):
    if y not in known:
        known[y] = y.register_hook(seen.append)
    return known[y]


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    return y.register_hook(lambda grad: (seen.append(grad), torch.nan_to_num(grad))[1])


@unnamed("02.1", "sees")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.float()))


@mistake("02.2", "shared_seen")
def watch_many(tensors, seen):
    watch_many.seen = seen
    return [
        t.register_hook(lambda grad, n=n: watch_many.seen.update({n: grad}))
        for n, t in tensors.items()
        if t.requires_grad
    ]


@mistake("02.2", "takes_off_earlier")
def watch_many(tensors, seen, earlier=[]):
    while earlier:
        earlier.pop().remove()
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    earlier += handles
    return handles


@unnamed("02.2", "two_at_a_time")
def watch_many(tensors, seen, known=WeakIdKeyDictionary()):
    handles, new = [], [n for n, t in tensors.items() if t.requires_grad and t not in known]
    for n in new:
        known[tensors[n]] = n
        handles.append(tensors[n].register_hook(partial(seen.__setitem__, n)))
    return handles


@mistake("02.2", "changes_gradient")
def watch_many(tensors, seen):
    def hook(n, g):
        seen[n] = g
        return torch.nan_to_num(g)

    return [t.register_hook(partial(hook, n)) for n, t in tensors.items() if t.requires_grad]


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    return [
        t.register_hook(lambda g, n=n: seen.update({n: g.half().float()}))
        for n, t in tensors.items()
        if t.requires_grad
    ]


@unnamed("02.2", "handle", points=2)  # its handles do take the hooks off
def watch_many(tensors, seen):
    return [
        register_multi_grad_hook([t], lambda grads, n=n: seen.update({n: grads[0]}))
        for n, t in tensors.items()
        if t.requires_grad
    ]


@mistake("02.3", "shared_seen")
def observe_once(y, seen):
    observe_once.seen = seen

    def keep(grad):
        observe_once.seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "takes_off_earlier")
def observe_once(y, seen, known=WeakIdKeyDictionary()):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    if y in known:
        known[y].remove()
    handle = known[y] = y.register_hook(keep)
    return handle


@unnamed("02.3", "two_at_a_time")
def observe_once(y, seen, known=WeakIdKeyDictionary()):
    def keep(grad):
        seen.append(grad)
        known[y].remove()

    if y not in known:
        known[y] = y.register_hook(keep)
    return known[y]


@unnamed("02.3", "two_at_a_time")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    def keep_leaf(leaf):
        seen.append(leaf.grad.clone())
        handle.remove()

    register = y.register_post_accumulate_grad_hook if y.is_leaf else y.register_hook
    handle = register(keep_leaf if y.is_leaf else keep)
    return handle


@mistake("02.3", "changes_gradient")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()
        return torch.nan_to_num(grad)

    handle = y.register_hook(keep)
    return handle


edited("02.3", "sees", ("seen.append(grad)", "seen.append(grad.half().to(grad.dtype))"), named=False)
edited("02.3", "watches_a_copy", ("y.register_hook", "y.clone().register_hook"))
edited("02.3", "not_registered", ("handle = y.register_hook(keep)", "handle = keep"))


@unnamed("02.3", "sees")
def observe_once(y, seen):  # the second gradient
    passes = []

    def keep(grad):
        passes.append(grad)
        if len(passes) == 2:
            seen.append(grad)
            handle.remove()

    handle = y.register_hook(keep)
    return handle


@unnamed("02.3", "sees")
def observe_once(y, seen):  # the first gradient, once the second is there
    passes = []

    def keep(grad):
        passes.append(grad)
        if len(passes) == 2:
            seen.append(passes[0])
            handle.remove()

    handle = y.register_hook(keep)
    return handle


@unnamed("02.4", "sees")
@contextmanager
def watching(tensors):  # one name only for each tensor
    seen = {}
    names = {id(t): (n, t) for n, t in tensors.items() if t.requires_grad}
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in names.values()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "no_finally", points=4)
class RemovesWithoutError:
    def __init__(self, tensors):
        self.tensors = tensors

    def __enter__(self):
        seen = {}
        self.handles = [
            t.register_hook(partial(seen.__setitem__, n)) for n, t in self.tensors.items() if t.requires_grad
        ]
        return seen

    def __exit__(self, kind, error, trace):
        if kind is None:
            for handle in self.handles:
                handle.remove()


edited(
    "02.4",
    "clean",
    ("        for handle in handles:", "        for handle in handles if seen else ():"),
    points=3,
    named=False,
)
