"""What the seventh strangers tried on lesson 06: wrong answers that had been accepted or told something untrue."""

import torch

from tests.answers import mistake, unnamed


@mistake("06.2", "keywords_by_place")
def normalise(layer, mean, std):
    def hook(module, args, kwargs):
        return ((args[0] - mean) / std, *args[1:], *kwargs.values()), {}

    return layer.register_forward_pre_hook(hook, with_kwargs=True)


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    def hook(module, args, kwargs):
        return args[1:], {**kwargs, "input": (args[0] - mean) / std}

    return layer.register_forward_pre_hook(hook, with_kwargs=True)


@unnamed("06.1", "refuses")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if value.requires_grad and (n := int(torch.isnan(value).sum())):
                raise ValueError(f"{name}: {n} nan")

    return layer.register_forward_pre_hook(guard)
