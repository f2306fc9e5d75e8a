"""What the seventeenth strangers tried on lesson 12: to count when the output is gone."""

import weakref

import torch
from torch.autograd.graph import saved_tensors_hooks

from tests.answers import mistake


@mistake("12.4", "nothing")
def forecast(build, shape):
    alive = weakref.WeakSet()

    class Kept:
        def __init__(self, t):
            self.t = t.detach()

    def pack(t):
        k = Kept(t)
        alive.add(k)
        return k

    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
        with saved_tensors_hooks(pack, lambda k: k.t):
            model(x)
    own = {t.untyped_storage() for t in [*model.parameters(), *model.buffers()]}
    return sum(s.nbytes() for s in {k.t.untyped_storage() for k in alive} - own)
