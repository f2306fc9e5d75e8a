"""Right answers to 14.4, `patching_map`, that take their hooks off themselves, or register none."""

import itertools
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

from hookedu import record
from tests.answers import alternative, edited


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    kept, handles = {}, []
    for n, block in enumerate(model.blocks):
        handles.append(
            block.register_forward_hook(lambda m, a, out, n=n: kept.update({n: out.detach().clone()}))
        )
    try:
        good = model(clean)[0, -1]
    finally:
        for handle in handles:
            handle.remove()
    bad = model(corrupted)[0, -1]
    gap = (good[right] - good[wrong]) - (bad[right] - bad[wrong])
    rows = []
    for n, block in enumerate(model.blocks):
        row = []
        for p in range(clean.shape[1]):

            def patch(module, args, output, n=n, p=p):
                output = output.clone()
                output[:, p] = kept[n][:, p]
                return output

            handle = block.register_forward_hook(patch)
            try:
                now = model(corrupted)[0, -1]
            finally:
                handle.remove()
            row.append(((now[right] - now[wrong]) - (bad[right] - bad[wrong])) / gap)
        rows.append(torch.stack(row))
    return torch.stack(rows)


@alternative("14.4")
@torch.no_grad()
def patching_map(model, clean, corrupted, right, wrong):
    # Without hooks: the blocks by hand.
    def stream(ids):
        x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
        found = []
        for block in model.blocks:
            x = block(x)
            found.append(x)
        return found

    def difference(x):
        logits = model.unembed(model.norm(x[0, -1]))
        return (logits[right] - logits[wrong]).item()

    clean_stream, bad_stream = stream(clean), stream(corrupted)
    good, bad = difference(clean_stream[-1]), difference(bad_stream[-1])
    shares = torch.empty(len(model.blocks), clean.shape[1])
    for n, p in itertools.product(range(len(model.blocks)), range(clean.shape[1])):
        x = bad_stream[n].clone()
        x[:, p] = clean_stream[n][:, p]
        for block in model.blocks[n + 1 :]:
            x = block(x)
        shares[n, p] = (difference(x) - bad) / (good - bad)
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    @contextmanager
    def hooked(module, hook):
        handle = module.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def put(value, place, module, args, output):
        return torch.cat([output[:, :place], value[:, place : place + 1], output[:, place + 1 :]], 1)

    def diff(logits):
        return logits[0, -1].log_softmax(-1)[[right, wrong]].diff().neg().item()

    names = [f"blocks.{n}" for n in range(len(model.blocks))]
    with record(model, names) as recording:
        good = diff(model(clean))
    bad = diff(model(corrupted))

    def share(name, place):
        with hooked(model.get_submodule(name), partial(put, recording[name].activation, place)):
            return (diff(model(corrupted)) - bad) / (good - bad)

    return torch.tensor([[share(name, place) for place in range(clean.shape[-1])] for name in names])


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Switch(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block, self.kept, self.place = block, None, None

        def forward(self, x, cache=None):
            out = self.block(x, cache)
            if self.kept is None:
                self.kept = out.detach().clone()
            elif self.place is not None:
                out = out.clone()
                out[:, self.place] = self.kept[:, self.place]
            return out

    def difference(ids):
        logits = model(ids)
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    original = model.blocks
    model.blocks = nn.ModuleList(Switch(block) for block in original)
    try:
        good, bad = difference(clean), difference(corrupted)
        shares = torch.zeros(len(original), clean.shape[1])
        for n, switch in enumerate(model.blocks):
            for switch.place in range(clean.shape[1]):
                shares[n, switch.place] = (difference(corrupted) - bad) / (good - bad)
            switch.place = None
    finally:
        model.blocks = original
    return shares


edited(
    "14.4",
    None,
    ("(difference(corrupted) - bad) / (good - bad)", "1 - (good - difference(corrupted)) / (good - bad)"),
)
edited("14.4", None, ("(logits[right] - logits[wrong])", "(logits[wrong] - logits[right])"))
edited("14.4", None, ("output.clone()", "output + 0"))
edited(
    "14.4",
    None,
    ("(difference(corrupted) - bad)", "(bad - difference(corrupted))"),
    ("(good - bad)", "(bad - good)"),
)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # The forward of a block is replaced for the time being.
    originals, kept = [block.forward for block in model.blocks], []

    def looking(forward):
        def call(*args):
            kept.append(forward(*args).detach())
            return kept[-1]

        return call

    def putting(forward, value, place):
        def call(*args):
            out = forward(*args).clone()
            out[:, place] = value[:, place]
            return out

        return call

    def difference(ids):
        right_one, wrong_one = model(ids)[0, -1, [right, wrong]].tolist()
        return right_one - wrong_one

    try:
        for block, forward in zip(model.blocks, originals):
            block.forward = looking(forward)
        good = difference(clean)
    finally:
        for block in model.blocks:
            del block.forward
    bad = difference(corrupted)
    shares = torch.zeros(len(kept), clean.shape[1])
    for n, (block, forward) in enumerate(zip(model.blocks, originals)):
        try:
            for p in range(clean.shape[1]):
                block.forward = putting(forward, kept[n], p)
                shares[n, p] = (difference(corrupted) - bad) / (good - bad)
        finally:
            del block.forward
    return shares
