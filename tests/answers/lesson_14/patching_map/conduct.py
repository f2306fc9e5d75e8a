"""Wrong answers to 14.4, `patching_map`: what they do besides, such as hooks that stay, lost errors, a changed model."""

import torch

from hookedu import record
from tests.answers import edited, mistake

edited("14.4", "in_place", ("        output = output.clone()\n", ""), points=5)
edited("14.4", "reads_again", ("        for place", "        difference(clean)\n        for place"), points=5)


@mistake("14.4", "reads_again", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    def patched(number, place):
        block, kept = model.blocks[number], {}

        def keep(module, args, output):
            kept["clean"] = output.detach().clone()

        def patch(module, args, output):
            output = output.clone()
            output[:, place] = kept["clean"][:, place]
            return output

        with block.register_forward_hook(keep):
            model(clean)
        with block.register_forward_hook(patch):
            return model(corrupted)

    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    good, bad = difference(model(clean)), difference(model(corrupted))
    return torch.tensor(
        [
            [(difference(patched(n, p)) - bad) / (good - bad) for p in range(clean.shape[1])]
            for n in range(len(model.blocks))
        ]
    )


@mistake("14.4", "left_after_error", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    kept = []

    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    handles = [
        b.register_forward_hook(lambda m, a, out: kept.append(out.detach().clone())) for b in model.blocks
    ]
    good = difference(clean)
    for handle in handles:
        handle.remove()
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


@mistake("14.4", "unrestored", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):
            handle = block.register_forward_hook(patch)
            shares[number, place] = (difference(corrupted) - bad) / (good - bad)
            handle.remove()
    return shares


edited(
    "14.4",
    "swallows_error",
    (
        "        good = difference(clean)",
        "        try:\n            good = difference(clean)\n        except Exception:\n            good = 1.0",
    ),
    points=5,
)
edited(
    "14.4",
    "hooks_stay",
    ("            with block", "            block"),
    ("(patch):\n                shares", "(patch)\n            shares"),
)
