"""Right answers to 14.3, `patched`, that take their hooks off themselves, or register none."""

from contextlib import contextmanager

import torch
from torch import nn

from tests.answers import alternative, edited


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    seen = []

    def patch(module, args, output):
        seen.append(output)
        if len(seen) == 2:
            mask = torch.arange(output.shape[1]) == place
            return torch.where(mask[:, None], seen[0], output)

    handle = model.blocks[number].register_forward_hook(patch)
    try:
        model(clean)
        return model(corrupted)
    finally:
        handle.remove()


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    @contextmanager
    def hooked(hook):
        handle = model.get_submodule(f"blocks.{number}").register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    value = None

    def keep(module, args, output):
        nonlocal value
        value = output[:, place].clone()

    with hooked(keep):
        model(clean)
    with hooked(lambda module, args, output: output.index_copy(1, torch.tensor([place]), value[:, None])):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    # Without hooks, part by part.
    def read(ids):
        x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
        for block in model.blocks[: number + 1]:
            x = block(x)
        return x

    x, y = read(corrupted).clone(), read(clean)
    x[:, place] = y[:, place]
    for block in model.blocks[number + 1 :]:
        x = block(x)
    return model.unembed(model.norm(x))


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    block = model.blocks[number]
    forward, kept = block.forward, []

    def keep(*args):
        kept.append(forward(*args))
        return kept[-1]

    def patch(*args):
        out = forward(*args).clone()
        out[:, place] = kept[0][:, place]
        return out

    try:
        block.forward = keep
        model(clean)
        block.forward = patch
        return model(corrupted)
    finally:
        del block.forward


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    class Patched(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block, self.kept = block, None

        def forward(self, x, cache=None):
            out = self.block(x, cache)
            if self.kept is None:
                self.kept = out.detach().clone()
                return out
            out = out.clone()
            out[:, place] = self.kept[:, place]
            return out

    block = model.blocks[number]
    model.blocks[number] = Patched(block)
    try:
        model(clean)
        return model(corrupted)
    finally:
        model.blocks[number] = block


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    with torch.no_grad():
        outputs = {}
        handles = [
            block.register_forward_hook(lambda m, a, out, n=n: outputs.__setitem__(n, out.clone()))
            for n, block in enumerate(model.blocks)
        ]
        try:
            model(clean)
        finally:
            for handle in handles:
                handle.remove()

        def patch(module, args, output, *, place=place):
            difference = torch.zeros_like(output)
            difference[:, place] = outputs[number][:, place] - output[:, place]
            return output + difference

        handle = model.blocks[number].register_forward_hook(patch)
        try:
            logits = model(corrupted)
        finally:
            handle.remove()
    return logits


edited("14.3", None, ("output.detach().clone()", "output"))
edited("14.3", None, ("    block, kept", "    clean = clean.clone()\n    block, kept"))
