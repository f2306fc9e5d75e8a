"""Wrong answers to 14.3, `patched`: what they do besides, such as hooks that stay, lost errors, a changed model."""

import torch

from tests.answers import edited, mistake

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
edited(
    "14.3",
    "swallows_error",
    (
        "    with block.register_forward_hook(keep):\n        model(clean)",
        "    try:\n        with block.register_forward_hook(keep):\n            model(clean)\n    except RuntimeError:\n        pass",
    ),
    points=4,
)
