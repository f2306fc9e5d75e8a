"""Right answers to 14.4, `patching_map`, whose hooks come off at the end of a `with` block."""

import itertools
from contextlib import ExitStack
from functools import partial

import numpy as np
import torch
from torch import nn

from hookedu import record
from tests.answers import alternative


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # All words of a block in one batch.
    words = clean.shape[1]

    def difference(logits):
        return logits[:, -1, right] - logits[:, -1, wrong]

    with record(model, ["blocks.*"]) as recording, torch.no_grad():
        good = difference(model(clean))
    with torch.no_grad():
        bad = difference(model(corrupted))
    rows, diagonal = [], torch.arange(words)
    for number, block in enumerate(model.blocks):
        value = recording[f"blocks.{number}"].activation[0]

        def patch(module, args, output):
            output = output.clone()
            output[diagonal, diagonal] = value
            return output

        with block.register_forward_hook(patch), torch.no_grad():
            rows.append((difference(model(corrupted.expand(words, -1))) - bad) / (good - bad))
    return torch.stack(rows)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Patch:
        def __init__(self, value, place):
            self.value, self.place = value, place

        def __call__(self, module, args, output):
            mask = torch.arange(output.shape[1]).view(1, -1, 1) == self.place
            return torch.where(mask, self.value, output)

    def score(ids):
        with torch.no_grad():
            last = model(ids)[0, -1]
        return float(last[right] - last[wrong])

    values = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_hook(lambda m, a, o: values.append(o.detach().clone()))
            )
        good = score(clean)
    bad = score(corrupted)
    result = np.zeros((len(model.blocks), clean.size(1)))
    for n, (block, value) in enumerate(zip(model.blocks, values)):
        for place in range(clean.size(1)):
            with block.register_forward_hook(Patch(value, place)):
                result[n, place] = (score(corrupted) - bad) / (good - bad)
    return torch.from_numpy(result)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Hooks that stay on for the whole map and look up which place it is the turn of.
    kept, turn = {}, None

    def hook(number, module, args, output):
        if turn is None:
            kept.setdefault(number, output.detach().clone())
        elif turn[0] == number:
            changed = output.clone()
            changed[:, turn[1]] = kept[number][:, turn[1]]
            return changed

    def difference(ids):
        logits = model(ids)[0, -1].tolist()
        return logits[right] - logits[wrong]

    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            stack.enter_context(block.register_forward_hook(partial(hook, number)))
        good = difference(clean)
        turn = (-1, -1)
        bad = difference(corrupted)
        values = []
        for turn in itertools.product(range(len(model.blocks)), range(clean.shape[1])):
            values.append((difference(corrupted) - bad) / (good - bad))
    return torch.tensor(values).view(len(model.blocks), -1)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Wrong and right exchanged everywhere: signs cancel.
    outputs = []
    handles = [
        b.register_forward_hook(lambda m, a, o: outputs.append(o.clone().detach())) for b in model.blocks
    ]
    try:
        logits = model(clean)
    finally:
        [handle.remove() for handle in handles]
    good = logits[0, -1, wrong] - logits[0, -1, right]
    logits = model(corrupted)
    bad = logits[0, -1, wrong] - logits[0, -1, right]
    shares = torch.zeros(len(outputs), clean.shape[1], dtype=torch.float64)
    for n, kept in enumerate(outputs):
        for p in range(clean.shape[1]):

            def patch(module, args, output):
                new = output.detach().clone()
                new[0, p] = kept[0, p]
                return new

            with model.blocks[n].register_forward_hook(patch):
                logits = model(corrupted)
            shares[n, p] = ((logits[0, -1, wrong] - logits[0, -1, right] - bad) / (good - bad)).detach()
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # One batch for good and bad; row 0 is clean, row 1 corrupted, and patches go from one row to the next.
    both = torch.cat([clean, corrupted])
    with record(model, ["blocks.*"]) as recording:
        logits = model(both)[:, -1]
    good, bad = (logits[:, right] - logits[:, wrong]).tolist()
    kept = [layer.activation[0] for layer in recording.values()]
    shares = []
    for number, block in enumerate(model.blocks):
        for place in range(both.shape[1]):
            with block.register_forward_hook(
                lambda module, args, output: output.index_put(
                    (torch.tensor([0]), torch.tensor([place])), kept[number][place]
                )
            ):
                last = model(corrupted)[0, -1]
            shares.append((last[right].item() - last[wrong].item() - bad) / (good - bad))
    return torch.tensor(shares).reshape(len(model.blocks), both.shape[1])


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # The bad difference is measured anew each time, which nothing forbids.
    def difference(logits):
        return logits[0, -1, right].item() - logits[0, -1, wrong].item()

    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_hook(lambda m, a, out: kept.append(out.numpy(force=True).copy()))
            )
        logits = model(clean)

    def share(number, place):
        def patch(module, args, output):
            array = output.numpy(force=True).copy()
            array[:, place] = kept[number][:, place]
            return torch.as_tensor(array)

        low = difference(model(corrupted))
        with model.blocks[number].register_forward_hook(patch):
            now = difference(model(corrupted))
        return (now - low) / (difference(logits) - low)

    rows = (tuple(share(n, p) for p in range(corrupted.shape[1])) for n in range(len(model.blocks)))
    return torch.tensor(tuple(rows))


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Patches what goes into the next module.
    behind = [*model.blocks[1:], model.norm]
    kept = []

    def keep(module, args):
        kept.append(args[0].detach().clone())

    def difference(ids):
        return (model(ids)[0, -1, [right, wrong]] @ torch.tensor([1.0, -1.0])).item()

    handles = [module.register_forward_pre_hook(keep) for module in behind]
    try:
        good = difference(clean)
    finally:
        while handles:
            handles.pop().remove()
    bad = difference(corrupted)
    shares = torch.full((len(behind), clean.shape[1]), float("nan"))
    for n, module in enumerate(behind):
        for p in range(clean.shape[1]):

            def patch(module, args):
                x = args[0].clone()
                x[:, p] = kept[n][:, p]
                return (x, *args[1:])

            with module.register_forward_pre_hook(patch):
                shares[n, p] = (difference(corrupted) - bad) / (good - bad + 1e-9)
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    everything = {"good": {}, "now": None}

    def difference(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    def hook(module, args, output):
        for number, block in enumerate(model.blocks):
            if block is module and everything["now"] is None:
                everything["good"][number] = output.detach().clone()
            elif block is module and everything["now"][0] == number:
                output = output.clone()
                output[:, everything["now"][1]] = everything["good"][number][:, everything["now"][1]]
        return output

    with torch.no_grad(), nn.modules.module.register_module_forward_hook(hook):
        good = difference(model(clean))
        everything["now"] = (None, None)
        bad = difference(model(corrupted))
        shares = torch.zeros(len(model.blocks), clean.shape[1])
        for n in range(shares.shape[0]):
            for p in range(shares.shape[1]):
                everything["now"] = (n, p)
                shares[n, p] = difference(model(corrupted))
    return (shares - bad) / (good - bad)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Patch:
        def __init__(self, block, place, value):
            self.block, self.place, self.value = block, place, value

        def __enter__(self):
            self.handle = self.block.register_forward_hook(self.put)

        def __exit__(self, *error):
            self.handle.remove()

        def put(self, module, args, output):
            rows = list(output.unbind(dim=1))
            rows[self.place] = self.value[:, self.place]
            return torch.stack(rows, dim=1)

    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            handle = block.register_forward_hook(lambda m, a, out: kept.append(out.detach().clone()))
            stack.callback(handle.remove)
        top = model(clean)[0, -1].detach()
    low = model(corrupted)[0, -1].detach()
    low, top = low[right] - low[wrong], top[right] - top[wrong]
    shares = []
    for block, value in zip(model.blocks, kept, strict=True):
        shares.append([])
        for place in range(value.shape[1]):
            with Patch(block, place, value):
                now = model(corrupted)[0, -1].detach()
            shares[-1].append((now[right] - now[wrong]).sub(low).div(top - low).item())
    return torch.tensor(shares)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # In inference mode, with a generator that yields the entries.
    def entries():
        with record(model, ["blocks.*"]) as recording:
            yield model(clean)
        yield model(corrupted)
        for number, block in enumerate(model.blocks):
            value = recording[f"blocks.{number}"].activation
            for place in range(clean.shape[1]):

                def put(module, args, output, value=value, place=place):
                    (new := output.clone())[:, place] = value[:, place]
                    return new

                with block.register_forward_hook(put):
                    logits = model(corrupted)
                yield logits

    with torch.inference_mode():
        good, bad, *rest = ((x[0, -1, right] - x[0, -1, wrong]).item() for x in entries())
    return torch.tensor([(one - bad) / (good - bad) for one in rest]).unflatten(0, (len(model.blocks), -1))


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Hooks on the last thing that a block does: its MLP, which is given what is missing.
    kept, streams = [], {}

    def keep(module, args, output):
        kept.append(output.detach().clone())

    def score(logits):
        return np.subtract(*logits[0, -1, [right, wrong]].detach().numpy().astype(float))

    handles = [block.register_forward_hook(keep) for block in model.blocks]
    try:
        good = score(model(clean))
    finally:
        for handle in handles:
            handle.remove()
    bad = score(model(corrupted))

    def middle(module, args, output):
        streams["x"] = output.detach()

    shares = np.zeros((len(kept), clean.shape[1]), dtype=np.float32)
    for (number, place), _ in np.ndenumerate(shares):

        def mlp(module, args, output):
            output = output.clone()
            output[:, place] = kept[number][:, place] - streams["x"][:, place]
            return output

        block = model.blocks[number]
        with block.middle.register_forward_hook(middle), block.mlp.register_forward_hook(mlp):
            shares[number, place] = (score(model(corrupted)) - bad) / (good - bad)
    return torch.from_numpy(shares)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # One run for everything: each row of the batch is one patch.
    blocks, words = len(model.blocks), clean.shape[1]
    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, a, out: kept.append(out[0].detach())))
        good = model(clean)[0, -1]
    batch = corrupted.repeat(blocks * words + 1, 1)

    def put(number, module, args, output):
        output = output.clone()
        for place in range(words):
            output[number * words + place, place] = kept[number][place]
        return output

    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            stack.enter_context(block.register_forward_hook(partial(put, number)))
        logits = model(batch)[:, -1]
    scores = logits[:, right] - logits[:, wrong]
    shares = (scores - scores[-1]) / (good[right] - good[wrong] - scores[-1])
    return shares[:-1].view(blocks, words)
