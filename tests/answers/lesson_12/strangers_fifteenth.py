"""Wrong answers to lesson 12 that passed the checks, from strangers of the fifteenth round; and right ones beside them."""

import itertools
import weakref
from collections import Counter
from contextlib import contextmanager
from functools import partial

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tests.answers import alternative, mistake


# What `pack` returns closes over the original, for the sake of its type.
@mistake("12.1", "keeps_both", points=8)
def half_saved(counts):
    def pack(tensor):
        kept = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += kept.nbytes
        if tensor.dtype != torch.float32:
            return lambda kept=kept: kept
        return lambda: kept.to(tensor.dtype)

    return saved_tensors_hooks(pack, lambda give: give())


@alternative("12.1")
def half_saved(counts):
    def pack(tensor):
        dtype = tensor.dtype
        kept = tensor.half() if dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += kept.nbytes
        return lambda: kept.to(dtype)

    return saved_tensors_hooks(pack, lambda give: give())


# An object without a __dict__, in which nobody finds the original.
@mistake("12.1", "keeps_both", points=8)
def half_saved(counts):
    class Both:
        __slots__ = ("half", "like")

        def __init__(self, half, like):
            self.half, self.like = half, like

    def pack(tensor):
        kept = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += kept.nbytes
        return Both(kept, tensor.detach())

    return saved_tensors_hooks(pack, lambda both: both.half.to(both.like.dtype))


# Sums are kept inside and handed over at the end.
@mistake("12.1", "counts_late", points=8)
@contextmanager
def half_saved(counts):
    sums = Counter()

    def pack(tensor):
        kept = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        sums.update(saved=tensor.nbytes, kept=kept.nbytes)
        return kept, tensor.dtype

    try:
        with saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])):
            yield
    finally:
        for name, number in sums.items():
            counts[name] += number


# Each key is dropped twice: the second time from the shelf of the latest call.
@mistake("12.2", "drops_on_both", points=12)
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key = key

        def __del__(self):
            put_away.latest.drop(self.key)

    put_away.latest = shelf

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        ticket = Ticket(shelf.put(tensor))
        weakref.finalize(ticket, shelf.drop, ticket.key)
        return ticket

    def unpack(packed):
        return shelf.get(packed.key) if isinstance(packed, Ticket) else packed

    return saved_tensors_hooks(pack, unpack)


# Whoever had chosen a default device for the whole program has none afterwards.
@mistake("12.4", "default_device", points=8)
def forecast(build, shape):
    torch.set_default_device("meta")
    try:
        model, x = build(), torch.empty(shape)
    finally:
        torch.set_default_device(None)
    own = {t.untyped_storage() for t in itertools.chain(model.parameters(), model.buffers())}
    saved = set()

    def pack(tensor):
        saved.add(tensor.untyped_storage())
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda packed: packed):
        model(x)
    return sum(storage.nbytes() for storage in saved - own)


@alternative("12.4")
def forecast(build, shape):
    """The old device is put back when all is done, and by name."""
    saved, before = set(), torch.get_default_device()
    torch.set_default_device("meta")
    try:
        model, x = build(), torch.empty(shape)

        def pack(tensor):
            saved.add(tensor.untyped_storage())
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda packed: packed):
            model(x)
    finally:
        torch.set_default_device(before)
    own = {t.untyped_storage() for t in itertools.chain(model.parameters(), model.buffers())}
    return sum(storage.nbytes() for storage in saved - own)


# What is kept is counted with all the memory behind it.
@mistake("12.1", "wrong_kept", points=7)
def half_saved(counts):
    def pack(tensor):
        kept = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += kept.untyped_storage().nbytes()
        return kept, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


# Not `x` itself: its old gradient is replaced, and the message said that it had none.
@mistake("12.3", "wipes", points=4)
def count_recomputed(model, x):
    counts = dict.fromkeys((name for name, _ in model.named_children()), 0)

    def started(name, module, args):
        counts[name] += 1

    own = x.detach().clone().requires_grad_(x.requires_grad)
    output = checkpoint(model, own, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(started, n)) for n, c in model.named_children()]
    output.sum().backward()
    if x.requires_grad:
        x.grad = own.grad
    for handle in handles:
        handle.remove()
    return counts
