"""Wrong answers to 14.4, `patching_map`: what comes out is not what was asked for."""

from contextlib import ExitStack
from functools import partial

import torch

from hookedu import record
from tests.answers import edited, mistake

edited("14.4", "no_effect", ("        return output\n", ""))
edited("14.4", "all_places", ("output[:, place] = kept[:, place]", "output[:] = kept"))
edited(
    "14.4",
    "all_places",
    ("shares[number, place] = (difference(corrupted)", "shares[number, place] = (difference(clean)"),
)
edited("14.4", "not_divided", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted) - bad"))
edited("14.4", "not_divided", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted)"))
edited(
    "14.4", "other_ratio", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted) / good")
)
edited(
    "14.4",
    "other_ratio",
    ("(difference(corrupted) - bad) / (good - bad)", "(difference(corrupted) - bad) / good"),
)
edited("14.4", "lost_share", ("difference(corrupted) - bad)", "good - difference(corrupted))"))
edited("14.4", "wrong_sign", ("difference(corrupted) - bad)", "bad - difference(corrupted))"))
edited(
    "14.4",
    "wrong_sign",
    ("(difference(corrupted) - bad)", "abs(difference(corrupted) - bad)"),
    ("/ (good - bad)", "/ abs(good - bad)"),
)
edited("14.4", "wrong_sign", ("/ (good - bad)", "/ abs(good - bad)"))
edited("14.4", "transposed", ("return shares", "return shares.T"))
edited("14.4", "clamped", ("return shares", "return shares.clamp(0, 1)"))
edited("14.4", "clamped", ("return shares", "return shares.relu()"))
edited("14.4", "percent", ("return shares", "return 100 * shares"))
edited("14.4", "rounded", ("return shares", "return shares.round(decimals=1)"))
edited("14.4", "one_word", ("(logits[right] - logits[wrong])", "logits[right]"))
edited("14.4", "probabilities", ("model(ids)[0, -1]", "model(ids)[0, -1].softmax(dim=-1)"))
edited("14.4", "other_position", ("model(ids)[0, -1]", "model(ids)[0, -2]"))
edited("14.4", "other_position", ("model(ids)[0, -1]", "model(ids)[0].mean(dim=0)"))
edited(
    "14.4",
    "swapped_prompts",
    ("good = difference(clean)", "good = difference(corrupted)"),
    ("bad = difference(corrupted)", "bad = difference(clean)"),
    ("(difference(corrupted) -", "(difference(clean) -"),
)
edited(
    "14.4",
    "patches_input",
    (
        "def patch(module, args, output):\n        output = output.clone()",
        "def patch(module, args):\n        output = args[0].clone()",
    ),
    ("        return output\n", "        return (output, *args[1:])\n"),
    ("block.register_forward_hook", "block.register_forward_pre_hook"),
    (
        'kept = recording[f"blocks.{number}"].activation',
        'kept = recording["embed"].activation + model.position(torch.arange(clean.shape[1])) if number == 0 else recording[f"blocks.{number - 1}"].activation',
    ),
    ('["blocks.*"]', '["embed", "blocks.*"]'),
)
edited("14.4", "several_places", ("output[:, place] = kept[:, place]", "output[:, place:] = kept[:, place:]"))
edited(
    "14.4", "adds_up", ("output[:, place] = kept[:, place]", "output[:, : place + 1] = kept[:, : place + 1]")
)
edited("14.4", "feature", ("output[:, place] = kept[:, place]", "output[:, :, place] = kept[:, :, place]"))
edited("14.4", "zeros", ("= kept[:, place]", "= 0"))
edited("14.4", "adds", ("= kept[:, place]", "+= kept[:, place]"))
edited("14.4", "shifted", ("return shares", "return shares.roll(1, dims=1)"))
edited("14.4", "shifted", ("shares[number, place]", "shares[-1 - number, place]"))
edited("14.4", "returns_nothing", ("    return shares", "    shares"))
edited("14.4", "returns_list", ("return shares", "return shares.tolist()"))
edited("14.4", "returns_list", ("return shares", "return shares.numpy()"))
edited("14.4", "not_floats", ("clean.shape[1])\n    for", "clean.shape[1], dtype=torch.long)\n    for"))
edited("14.4", "row_missing", ("return shares", "return shares[:-1]"))
edited("14.4", "row_too_many", ("torch.zeros(len(model.blocks)", "torch.zeros(len(model.blocks) + 1"))
edited("14.4", "other_shape", ("return shares", "return shares[None]"))
edited("14.4", "other_shape", ("return shares", "return shares.flatten()"))
edited("14.4", "not_finite", ("bad = difference(corrupted)", "bad = difference(corrupted)\n    good = bad"))
edited(
    "14.4",
    "only_differing",
    (
        "            with block",
        "            if clean[0, place] == corrupted[0, place]:\n                continue\n            with block",
    ),
)
edited("14.4", "wrong_arguments", ("def patch(module, args, output)", "def patch(output)"))
edited("14.4", "returns_tuple", ("        return output\n", "        return output, kept\n"))
edited("14.4", "calls_now", ("hook(patch)", "hook(print())"))
edited(
    "14.4",
    "nothing_kept",
    ('recording[f"blocks.{number}"].activation', "layers[number + 1]"),
    ("    bad =", "    layers = [layer.activation for layer in recording.values()]\n    bad ="),
)
edited(
    "14.4",
    "not_finite",
    ("bad = difference(corrupted)", "bad = difference(corrupted)\n    good = bad"),
    ("(logits[right] - logits[wrong]).item()", "logits[right] - logits[wrong]"),
)


@mistake("14.4", "adds_up")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(number, place, module, args, output):
        output = output.clone()
        output[:, place] = recording[f"blocks.{number}"].activation[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            for place in range(clean.shape[1]):
                stack.enter_context(block.register_forward_hook(partial(patch, number, place)))
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "every_block")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(number, place, module, args, output):
        output = output.clone()
        output[:, place] = recording[f"blocks.{number}"].activation[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number in range(len(model.blocks)):
        for place in range(clean.shape[1]):
            with ExitStack() as stack:
                for n, block in enumerate(model.blocks):
                    stack.enter_context(block.register_forward_hook(partial(patch, n, place)))
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "patches_word")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    good, bad = difference(clean), difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number in range(len(model.blocks)):
        for place in range(clean.shape[1]):
            mixed = corrupted.clone()
            mixed[0, place] = clean[0, place]
            shares[number, place] = (difference(mixed) - bad) / (good - bad)
    return shares


@mistake("14.4", "keeps_input")
def patching_map(model, clean, corrupted, right, wrong):
    kept = []

    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_pre_hook(lambda m, args: kept.append(args[0].detach().clone()))
            )
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        for place in range(clean.shape[1]):

            def patch(module, args, output):
                output = output.clone()
                output[:, place] = kept[number][:, place]
                return output

            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "part_of_block")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[:, place]
        return output

    with record(model, ["blocks.*.mlp"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}.mlp"].activation
        for place in range(clean.shape[1]):
            with block.mlp.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "stops_early")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    with record(model, ["blocks.*"]) as recording:
        good, bad = difference(model(clean)), difference(model(corrupted))
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, layer in enumerate(recording.values()):
        for place in range(clean.shape[1]):
            x = layer.calls[1].activation.clone()
            x[:, place] = layer.calls[0].activation[:, place]
            shares[number, place] = (difference(model.unembed(model.norm(x))) - bad) / (good - bad)
    return shares


@mistake("14.4", "stale")
def patching_map(model, clean, corrupted, right, wrong, kept={}):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[name][:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        name = str(clean.tolist()), number
        kept.setdefault(name, recording[f"blocks.{number}"].activation)
        for place in range(clean.shape[1]):
            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "row_for_place")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[place] = kept[place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):
            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


edited(
    "14.4",
    "absolute",
    ("return (logits[right] - logits[wrong]).item()", "return abs(logits[right] - logits[wrong]).item()"),
)
edited("14.4", "entries_missing", ("for place in range(", "for place in range(1, "))
edited("14.4", "entries_missing", ("range(clean.shape[1]):", "range(clean.shape[1] - 1):"))
edited(
    "14.4",
    "no_effect",
    (
        "    shares = torch",
        "    if good <= bad:\n        return torch.zeros(len(model.blocks), clean.shape[1])\n    shares = torch",
    ),
)
edited("14.4", "shares", ("return shares", "return shares / shares.sum(dim=1, keepdim=True)"), named=False)
edited("14.4", "shares", ("return shares", "return shares.softmax(dim=1)"), named=False)

edited("14.4", "fixed_words", ("[right] - logits[wrong]", "[encode('Anna')[0]] - logits[encode('Ben')[0]]"))


@mistake("14.4", "no_positions")
def patching_map(model, clean, corrupted, right, wrong):
    def run(ids, number=-1, place=0):
        x, outputs = model.embed(ids), []
        for n, block in enumerate(model.blocks):
            x = block(x)
            if n == number:
                x = torch.cat([x[:, :place], kept[n][:, place : place + 1], x[:, place + 1 :]], dim=1)
            outputs.append(x)
        logits = model.unembed(model.norm(x))[0, -1]
        return outputs, logits[right] - logits[wrong]

    kept, good = run(clean)
    bad = run(corrupted)[1]
    places = range(clean.shape[1])
    rows = [[(run(corrupted, n, p)[1] - bad) / (good - bad) for p in places] for n in range(len(kept))]
    return torch.tensor(rows)
