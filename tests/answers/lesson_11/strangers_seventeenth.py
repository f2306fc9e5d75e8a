"""Answers to lesson 11 of strangers who had not read the checks, in their seventeenth round."""

import copy

import torch

from tests.answers import mistake


@mistake("11.4", "no_return")  # the hook is on the layer that was given, and returns: what runs is a copy
def channel_effect(model, layer, channel, images, labels):
    model = copy.deepcopy(model)

    def off(module, args, output):
        out = output.clone()
        out[:, channel] = 0
        return out

    rows = torch.arange(len(images))
    with torch.no_grad():
        before = model(images)[rows, labels]
        with layer.register_forward_hook(off):
            after = model(images)[rows, labels]
    return before - after
