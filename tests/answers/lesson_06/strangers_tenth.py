"""What the tenth strangers tried on lesson 06: an argument that gets changed, and is used by a later call."""

import torch

from tests.answers import edited, mistake


@mistake("06.2", "argument", points=3)
def normalise(layer, mean, std):
    scale = std.reciprocal_() if torch.is_tensor(std) else 1 / std
    return layer.register_forward_pre_hook(lambda module, args: ((args[0] - mean) * scale, *args[1:]))


edited("06.1", "others", ("    def guard", "    layer._forward_pre_hooks.clear()\n\n    def guard"), points=6)
edited("06.1", "mode", ("    def guard", "    layer.eval()\n\n    def guard"), points=6)
