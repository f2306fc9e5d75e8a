"""What the tenth strangers tried on lesson 11: wrong answers whose message changed from check to check."""

import torch
from torch import nn

from tests.answers import mistake, unnamed


# In front of a ReLU a kernel of 0 is as good as a channel that is off, if the bias is below 0.
@unnamed("11.4", "effect")
def channel_effect(model, layer, channel, images, labels):
    conv = layer if hasattr(layer, "weight") else next(m for m in model.modules() if isinstance(m, nn.Conv2d))
    with torch.no_grad():
        before = model(images).gather(1, labels[:, None])[:, 0]
        kernel = conv.weight[channel].clone()
        conv.weight[channel] = 0
        after = model(images).gather(1, labels[:, None])[:, 0]
        conv.weight[channel] = kernel
    return before - after


# Somebody else's hooks on parameters go.
@mistake("11.4", "others", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    with torch.no_grad():
        before = model(images).gather(1, labels[:, None])[:, 0]
        with layer.register_forward_hook(off):
            after = model(images).gather(1, labels[:, None])[:, 0]
    for parameter in model.parameters():
        if parameter._backward_hooks:
            parameter._backward_hooks.clear()
    return before - after
