"""Right answers to 14.3, `patched`, whose hooks come off at the end of a `with` block."""

from contextlib import ExitStack
from functools import partial

import numpy as np
import torch
from torch import nn

from hookedu import record
from tests.answers import alternative


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    with record(model, [f"blocks.{number}"]) as recording:
        model(clean)
    value = recording[f"blocks.{number}"].activation[:, place]

    def patch(module, args, output):
        return torch.cat([output[:, :place], value[:, None], output[:, place + 1 :]], dim=1)

    with model.blocks[number].register_forward_hook(patch):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    class Patch:
        def __init__(self):
            self.kept = None

        def __call__(self, module, args, output):
            if self.kept is None:
                self.kept = output.detach().clone()
                return None
            changed = output.clone()
            changed[:, place, :] = self.kept[:, place, :]
            return changed

    with model.blocks[number].register_forward_hook(Patch()), torch.no_grad():
        model(clean)
        logits = model(corrupted)
    return logits


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    def keep(kept, module, args, output):
        kept.append(output.detach().clone())

    def put(kept, place, module, args, output):
        output = output.clone()
        output[:, place].copy_(kept[0][:, place])
        return output

    kept, block = [], model.blocks[number]
    with ExitStack() as stack:
        stack.enter_context(block.register_forward_hook(partial(keep, kept)))
        model(clean)
    with ExitStack() as stack:
        stack.enter_context(block.register_forward_hook(partial(put, kept, place)))
        out = model(corrupted)
    return out


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    # Both prompts in one batch: the first half is clean.
    n = len(clean)

    def patch(module, args, output):
        output = output.clone()
        output[n:, place] = output[:n, place]
        return output

    with model.blocks[number].register_forward_hook(patch):
        return model(torch.cat([clean, corrupted]))[n:]


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    # A pre-hook of the next module; after the last block that is the final norm.
    behind = model.blocks[number + 1] if number + 1 < len(model.blocks) else model.norm
    kept = {}

    def keep(module, args):
        kept["x"] = args[0][:, place].detach().clone()

    def patch(module, args):
        x = args[0].clone()
        x[:, place] = kept["x"]
        return (x, *args[1:])

    with behind.register_forward_pre_hook(keep):
        model(clean)
    with behind.register_forward_pre_hook(patch):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    # The middle of the block will do, because the MLP works on each word by itself.
    middle, kept = model.blocks[number].middle, []

    def patch(module, args, output):
        new = output.clone()
        new[:, place] = kept[0][:, place]
        return new

    with middle.register_forward_hook(lambda module, args, output: kept.append(output.clone())):
        model(clean)
    with middle.register_forward_hook(patch):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    kept = {}

    def keep(module, args, output):
        kept["value"] = output.detach().numpy()[:, place].copy()

    def patch(module, args, output):
        array = output.detach().numpy().copy()
        array[:, place] = kept["value"]
        return torch.from_numpy(np.ascontiguousarray(array))

    with model.blocks[number].register_forward_hook(keep):
        model(clean)
    with model.blocks[number].register_forward_hook(patch):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    # Stops the first run as soon as the value is there.
    class Enough(Exception):
        pass

    kept = []

    def keep(module, args, output):
        kept.append(output.detach().clone())
        raise Enough

    def patch(module, args, output):
        mask = torch.zeros(output.shape[1], 1)
        mask[place] = 1
        return mask * kept[0] + (1 - mask) * output

    block = model.blocks[number]
    try:
        with block.register_forward_hook(keep):
            model(clean)
    except Enough:
        pass
    with block.register_forward_hook(patch):
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    block, kept = model.blocks[number], iter(())

    def keep(module, args, output):
        nonlocal kept
        kept = iter([output.detach().clone()])

    def patch(module, args, output):
        return (new := output.clone()).scatter_(
            1, torch.full_like(new[:, :1], place, dtype=torch.long), next(kept)[:, place, None]
        )

    for hook, prompt in ((keep, clean), (patch, corrupted)):
        with block.register_forward_hook(hook):
            logits = model(prompt)
    return logits


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    kept = {}

    def everywhere(module, args, output):
        if module is model.blocks[number]:
            if "clean" not in kept:
                kept["clean"] = output.detach().clone()
                return None
            rows = [
                clean if i == place else bad
                for i, (clean, bad) in enumerate(zip(kept["clean"].unbind(1), output.unbind(1)))
            ]
            return torch.stack(rows, dim=1)
        return None

    with nn.modules.module.register_module_forward_hook(everywhere):
        model(clean)
        return model(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    reading, kept = "clean", []

    def hook(module, args, output):
        if reading == "clean":
            kept.append(output.detach().clone())
            return output
        changed = output.detach().clone()
        changed[:, place] = kept.pop()[:, place]
        return changed

    with model.blocks[number].register_forward_hook(hook):
        model.forward(clean)
        reading = "corrupted"
        return model.forward(corrupted)


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    from copy import deepcopy

    twin = deepcopy(model)
    kept = []
    twin.blocks[number].register_forward_hook(lambda module, args, output: kept.append(output))
    twin(clean)

    def patch(module, args, output):
        new = output.clone()
        new[:, place] = kept[0][:, place]
        return new

    with model.blocks[number].register_forward_hook(patch):
        return model(corrupted)


@alternative("14.3")
@torch.no_grad()
def patched(model, clean, corrupted, number, place):
    kept = []
    with model.blocks[number].register_forward_hook(lambda *call: kept.append(call[-1].clone())):
        model(clean)
    (kept,) = kept

    def patch(module, inputs, output):
        result = kept.clone()
        others = [i for i in range(output.size(1)) if i != place]
        result[:, others] = output[:, others]
        return result

    with model.blocks[number].register_forward_hook(patch):
        logits = model(corrupted)
    return logits


@alternative("14.3")
def patched(model, clean, corrupted, number, place):
    kept = []
    with model.blocks[number].register_forward_hook(
        lambda module, args, kwargs, output: kept.append(output.detach().clone()), with_kwargs=True
    ):
        model(ids=clean)
    with model.blocks[number].register_forward_hook(
        lambda module, args, output: torch.stack(
            [kept[0][:, p] if p == place else output[:, p] for p in range(output.shape[1])], 1
        )
    ):
        return model(ids=corrupted)
