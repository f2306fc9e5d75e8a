"""Answers to 14.3, `patched`."""

from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import torch
from torch import nn

from hookedu import record
from tests.answers import alternative, edited, mistake


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


edited("14.3", None, ("output.detach().clone()", "output"))
edited("14.3", None, ("    block, kept", "    clean = clean.clone()\n    block, kept"))

edited("14.3", "all_places", ("output[:, place] =", "output[:] ="), ('["clean"][:, place]', '["clean"]'))
edited("14.3", "all_places", ("        model(clean)", "        return model(clean)"))
edited("14.3", "no_effect", ("        return output\n", ""))
edited("14.3", "no_effect", ("        return model(corrupted)", "        pass\n    return model(corrupted)"))
edited("14.3", "no_effect", ('kept["clean"][:, place]', "output[:, place]"))


@mistake("14.3", "no_effect")
def patched(model, clean, corrupted, number, place):
    kept = {}

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    with ExitStack() as stack:
        stack.enter_context(model.blocks[number].register_forward_hook(keep))
        model(clean)
        stack.enter_context(model.blocks[number].register_forward_hook(patch))
        return model(corrupted)


edited(
    "14.3",
    "swapped",
    ("        model(clean)", "        model(corrupted)"),
    ("return model(corrupted)", "return model(clean)"),
)
edited(
    "14.3",
    "swapped",
    ('output[:, place] = kept["clean"][:, place]', 'kept["clean"][:, place] = output[:, place]'),
    ("return output\n", 'return kept["clean"]\n'),
)


@mistake("14.3", "patches_word")
def patched(model, clean, corrupted, number, place):
    mixed = corrupted.clone()
    mixed[:, place] = clean[:, place]
    return model(mixed)


@mistake("14.3", "patches_word")
def patched(model, clean, corrupted, number, place):
    value = model.embed(clean)[:, place]

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = value
        return output

    with model.embed.register_forward_hook(patch):
        return model(corrupted)


@mistake("14.3", "patches_input")
def patched(model, clean, corrupted, number, place):
    block, kept = model.blocks[number], {}

    def keep(module, args):
        kept["clean"] = args[0].detach().clone()

    def patch(module, args):
        x = args[0].clone()
        x[:, place] = kept["clean"][:, place]
        return (x, *args[1:])

    with block.register_forward_pre_hook(keep):
        model(clean)
    with block.register_forward_pre_hook(patch):
        return model(corrupted)


edited("14.3", "keeps_input", ("output.detach().clone()", "args[0].detach().clone()"))


@mistake("14.3", "into_input")
def patched(model, clean, corrupted, number, place):
    block, kept = model.blocks[number], {}

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args):
        x = args[0].clone()
        x[:, place] = kept["clean"][:, place]
        return (x, *args[1:])

    with block.register_forward_hook(keep):
        model(clean)
    with block.register_forward_pre_hook(patch):
        return model(corrupted)


edited(
    "14.3",
    "wrong_place",
    ('output[:, place] = kept["clean"][:, place]', 'output[:, -1] = kept["clean"][:, -1]'),
)
edited(
    "14.3",
    "wrong_place",
    ('output[:, place] = kept["clean"][:, place]', 'output[:, place - 1] = kept["clean"][:, place - 1]'),
)
edited(
    "14.3",
    "wrong_place",
    ('output[:, place] = kept["clean"][:, place]', 'output[:, 0] = kept["clean"][:, 0]'),
)
edited("14.3", "wrong_block", ("model.blocks[number]", "model.blocks[number - 1]"))
edited("14.3", "wrong_block", ("model.blocks[number]", "model.blocks[0]"))
edited("14.3", "wrong_block", ("model.blocks[number]", "model.blocks[-1]"))


@mistake("14.3", "every_block")
def patched(model, clean, corrupted, number, place):
    with record(model, ["blocks.*"]) as recording:
        model(clean)

    def patch(n, module, args, output):
        output = output.clone()
        output[:, place] = recording[f"blocks.{n}"].activation[:, place]
        return output

    with ExitStack() as stack:
        for n, block in enumerate(model.blocks):
            stack.enter_context(block.register_forward_hook(partial(patch, n)))
        return model(corrupted)


edited(
    "14.3",
    "several_places",
    ('output[:, place] = kept["clean"][:, place]', 'output[:, : place + 1] = kept["clean"][:, : place + 1]'),
)
edited(
    "14.3",
    "several_places",
    ('output[:, place] = kept["clean"][:, place]', 'output[:, place:] = kept["clean"][:, place:]'),
)
edited(
    "14.3",
    "one_prompt",
    ('output[:, place] = kept["clean"][:, place]', 'output[0, place] = kept["clean"][0, place]'),
)
edited("14.3", "one_prompt", ('kept["clean"][:, place]', 'kept["clean"][0, place]'))
edited(
    "14.3",
    "row_for_place",
    ('output[:, place] = kept["clean"][:, place]', 'output[place] = kept["clean"][place]'),
)
edited(
    "14.3",
    "feature",
    ('output[:, place] = kept["clean"][:, place]', 'output[..., place] = kept["clean"][..., place]'),
)
edited("14.3", "adds", ("output[:, place] =", "output[:, place] +="))
edited(
    "14.3", "averages", ('kept["clean"][:, place]\n', '(output[:, place] + kept["clean"][:, place]) / 2\n')
)
edited("14.3", "zeros", ('kept["clean"][:, place]\n', "0\n"))
edited("14.3", "part_of_block", ("model.blocks[number]", "model.blocks[number].mlp"))


@mistake("14.3", "part_of_block")
def patched(model, clean, corrupted, number, place):
    attention, kept = model.blocks[number].attention, {}

    def keep(module, args, output):
        kept["clean"] = output[0].detach().clone()

    def patch(module, args, output):
        added, pattern = output
        added = added.clone()
        added[:, place] = kept["clean"][:, place]
        return added, pattern

    with attention.register_forward_hook(keep):
        model(clean)
    with attention.register_forward_hook(patch):
        return model(corrupted)


edited("14.3", "not_all_logits", ("return model(corrupted)", "return model(corrupted)[:, -1]"))
edited("14.3", "not_all_logits", ("return model(corrupted)", "return model(corrupted)[0, -1]"))
edited("14.3", "probabilities", ("return model(corrupted)", "return model(corrupted).softmax(dim=-1)"))
edited("14.3", "words", ("return model(corrupted)", "return model(corrupted).argmax(dim=-1)"))


@mistake("14.3", "difference")
def patched(model, clean, corrupted, number, place):
    kept = {}

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    with model.blocks[number].register_forward_hook(keep):
        model(clean)
    before = model(corrupted)
    with model.blocks[number].register_forward_hook(patch):
        return model(corrupted) - before


@mistake("14.3", "no_norm")
def patched(model, clean, corrupted, number, place):
    def read(ids):
        x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
        for block in model.blocks[: number + 1]:
            x = block(x)
        return x

    x, y = read(corrupted).clone(), read(clean)
    x[:, place] = y[:, place]
    for block in model.blocks[number + 1 :]:
        x = block(x)
    return model.unembed(x)


@mistake("14.3", "stops_early")
def patched(model, clean, corrupted, number, place):
    with record(model, [f"blocks.{number}"]) as recording:
        model(clean)
        model(corrupted)
    good, bad = (call.activation for call in recording[f"blocks.{number}"].calls)
    bad = bad.clone()
    bad[:, place] = good[:, place]
    return model.unembed(model.norm(bad))


edited("14.3", "returns_nothing", ("return model(corrupted)", "model(corrupted)"))
edited("14.3", "returns_more", ("return model(corrupted)", 'return model(corrupted), kept["clean"]'))
edited("14.3", "in_place", ("        output = output.clone()\n", ""), points=4)


@mistake("14.3", "in_place", points=4)
def patched(model, clean, corrupted, number, place):
    kept = {}

    def keep(module, args, output):
        kept["clean"] = output

    def patch(module, args, output):
        result = kept["clean"]
        result[:, :place] = output[:, :place]
        result[:, place + 1 :] = output[:, place + 1 :]
        return result

    with torch.no_grad():
        with model.blocks[number].register_forward_hook(keep):
            model(clean)
        with model.blocks[number].register_forward_hook(patch):
            return model(corrupted)


edited(
    "14.3",
    "hooks",
    (
        "    with block.register_forward_hook(patch):\n        return",
        "    block.register_forward_hook(patch)\n    return",
    ),
    points=4,
)
edited(
    "14.3",
    "no_effect",
    (
        "    with block.register_forward_hook(keep):\n        model",
        "    block.register_forward_hook(keep)\n    model",
    ),
)


@mistake("14.3", "left_after_error", points=4)
def patched(model, clean, corrupted, number, place):
    kept, block = {}, model.blocks[number]

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    handle = block.register_forward_hook(keep)
    model(clean)
    handle.remove()
    with block.register_forward_hook(patch):
        return model(corrupted)


@mistake("14.3", "left_after_error", points=4)
def patched(model, clean, corrupted, number, place):
    kept, block = {}, model.blocks[number]

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    handle = block.register_forward_hook(keep)
    try:
        model(clean)
    except Exception:
        handle.remove()
        raise
    handle.remove()
    with block.register_forward_hook(patch):
        return model(corrupted)


@mistake("14.3", "unrestored", points=4)
def patched(model, clean, corrupted, number, place):
    kept, block = {}, model.blocks[number]

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    with block.register_forward_hook(keep):
        model(clean)
    handle = block.register_forward_hook(patch)
    logits = model(corrupted)
    handle.remove()
    return logits


@mistake("14.3", "stale")
def patched(model, clean, corrupted, number, place, kept={}):
    def keep(module, args, output):
        kept.setdefault((number, place), output.detach().clone())

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[number, place][:, place]
        return output

    with model.blocks[number].register_forward_hook(keep):
        model(clean)
    with model.blocks[number].register_forward_hook(patch):
        return model(corrupted)


@mistake("14.3", "others", points=4)
def patched(model, clean, corrupted, number, place):
    kept, block = {}, model.blocks[number]

    def keep(module, args, output):
        kept["clean"] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept["clean"][:, place]
        return output

    try:
        block.register_forward_hook(keep)
        model(clean)
        block._forward_hooks.clear()
        block.register_forward_hook(patch)
        return model(corrupted)
    finally:
        block._forward_hooks.clear()


edited(
    "14.3",
    "argument",
    (
        "        return model(corrupted)",
        "        logits = model(corrupted)\n    corrupted[:, place] = clean[:, place]\n    return logits",
    ),
    points=4,
)
edited("14.3", "nothing_kept", ('kept["clean"] =', 'kept["good"] ='))
edited("14.3", "nothing_kept", ("        model(clean)", "        pass"))
edited("14.3", "returns_tuple", ("        return output\n", "        return (output,)\n"))
edited("14.3", "calls_now", ("hook(keep)", "hook(keep(None, None, clean))"))
edited("14.3", "wrong_arguments", ("patch(module, args, output)", "patch(output)"))


edited("14.3", "squeezes", ("return model(corrupted)", "return model(corrupted).squeeze()"))
edited("14.3", "not_tensor", ("return model(corrupted)", "return model(corrupted).tolist()"))
edited("14.3", "not_tensor", ("return model(corrupted)", "return model(corrupted).detach().numpy()"))
edited("14.3", "wrong_block", ("block, kept = model.blocks[number], {}", "block, kept = model, {}"))
edited("14.3", "one_prompt", ("        model(clean)", "        model(clean[:1])"))
edited(
    "14.3",
    "swallows_error",
    (
        "    with block.register_forward_hook(keep):\n        model(clean)",
        "    try:\n        with block.register_forward_hook(keep):\n            model(clean)\n    except RuntimeError:\n        pass",
    ),
    points=4,
)


@mistake("14.3", "no_positions")
def patched(model, clean, corrupted, number, place):
    def run(ids, kept=None):
        x = model.embed(ids)
        for n, block in enumerate(model.blocks):
            x = block(x)
            if n == number and kept is None:
                return x
            if n == number:
                x = torch.cat([x[:, :place], kept[:, place : place + 1], x[:, place + 1 :]], dim=1)
        return model.unembed(model.norm(x))

    return run(corrupted, run(clean))


@mistake("14.3", "block_twice")
def patched(model, clean, corrupted, number, place):
    with record(model, ["blocks.*"]) as recording:
        model(clean)
        model(corrupted)
    kept, x = (call.activation.clone() for call in recording[f"blocks.{number}"].calls)
    x[:, place] = kept[:, place]
    for block in model.blocks[number:]:
        x = block(x)
    return model.unembed(model.norm(x))
