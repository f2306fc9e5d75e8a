"""Wrong answers to 14.3, `patched`: what comes out is not what was asked for."""

from contextlib import ExitStack
from functools import partial

import torch

from hookedu import record
from tests.answers import edited, mistake

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
edited(
    "14.3",
    "no_effect",
    (
        "    with block.register_forward_hook(keep):\n        model",
        "    block.register_forward_hook(keep)\n    model",
    ),
)


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
