"""What the fifth stranger tried on lesson 02: wrong answers that had been accepted, and right ones."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from tests.answers import alternative, mistake


@alternative("02.1")
def watch(y, seen):
    return y.register_hook(seen.append)


@mistake("02.2", "clears_seen")
def watch_many(tensors, seen):
    seen.clear()
    return [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]


@mistake("02.3", "counts_seen")
def observe_once(y, seen):
    n = len(seen)

    def hook(g):
        if len(seen) == n:
            seen.append(g)
        handle.remove()

    handle = y.register_hook(hook)
    return handle


@mistake("02.3", "counts_seen")
def observe_once(y, seen):
    def hook(g):
        if not any(one.shape == g.shape and torch.equal(one, g) for one in seen):
            seen.append(g)
        handle.remove()

    handle = y.register_hook(hook)
    return handle


@mistake("02.3", "shared_handle")
def observe_once(y, seen):
    global _h

    def hook(g):
        seen.append(g)
        _h.remove()

    _h = y.register_hook(hook)
    return _h


@alternative("02.4")
@contextmanager
def watching(tensors):
    with ExitStack() as s:
        seen = {}
        for n, t in tensors.items():
            if t.requires_grad:
                s.enter_context(t.register_hook(partial(seen.__setitem__, n)))
        yield seen
