"""Answers to lesson 09 that were told a cause that was not theirs, found in the seventh reading."""

from torch import nn

from tests.answers import mistake


@mistake("09.1", "only_children")  # it walks through modules(), but registers after the loop
def conv_groups(model, x):
    groups = {}

    def keep(module, args, output):
        groups.setdefault(tuple(module.weight.shape), []).append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            last = module
    with last.register_forward_hook(keep):
        model(x)
    return groups
