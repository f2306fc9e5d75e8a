"""What the tenth strangers tried on lesson 06: an argument that gets changed, and is used by a later call."""

import torch

from tests.answers import mistake


@mistake("06.2", "argument", points=3)
def normalise(layer, mean, std):
    scale = std.reciprocal_() if torch.is_tensor(std) else 1 / std
    return layer.register_forward_pre_hook(lambda module, args: ((args[0] - mean) * scale, *args[1:]))


@mistake("06.1", "others", points=6)
def refuse_nan(layer, name):
    layer._forward_pre_hooks.clear()

    def guard(module, args):
        for value in args:
            count = value.isnan().sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "mode", points=6)
def refuse_nan(layer, name):
    layer.eval()

    def guard(module, args):
        for value in args:
            count = value.isnan().sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)
