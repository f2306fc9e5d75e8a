"""What the tenth strangers tried on lesson 06: an argument that gets changed, and is used by a later call."""

import torch

from tests.answers import mistake


@mistake("06.2", "argument", points=3)
def normalise(layer, mean, std):
    scale = std.reciprocal_() if torch.is_tensor(std) else 1 / std
    return layer.register_forward_pre_hook(lambda module, args: ((args[0] - mean) * scale, *args[1:]))
