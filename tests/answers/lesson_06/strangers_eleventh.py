"""Answers to lesson 06 of strangers who had not read the checks, in their eleventh round: inputs behind an empty one."""

import torch

from tests.answers import mistake


@mistake("06.1", "first_only", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            if value.numel() == 0:
                break
            count = int(torch.isnan(value).sum())
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)
