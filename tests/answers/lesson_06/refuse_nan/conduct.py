"""Wrong answers to 06.1, `refuse_nan`: what they do besides, such as hooks that stay, lost errors, a changed model."""

import numpy as np
import torch

from tests.answers import edited, mistake, unnamed


@mistake("06.1", "changes_output")
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")
        return torch.nan_to_num(args[0]) * 0

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "cuts_gradient", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")
        return tuple(value.detach() for value in args)

    return layer.register_forward_pre_hook(guard)


@mistake("06.1", "no_handle", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    layer.register_forward_pre_hook(guard)


edited("06.1", "copies", ('numbers")', 'numbers")\n        return tuple(v.clone() for v in args)'), points=6)
edited("06.1", "no_handle", ("return layer", "return layer, layer"), points=6)


@mistake("06.1", "removes_itself")
def refuse_nan(layer, name):
    def guard(module, args):
        handle.remove()
        for value in args:
            count = torch.isnan(value).sum().item()
            if count:
                raise ValueError(f"{name}: {count} nan")

    handle = layer.register_forward_pre_hook(guard)
    return handle


edited("06.1", "changes_input", ("if count:", "value.requires_grad_()\n            if count:"), points=6)
edited("06.1", "changes_input", ("if count:", "value.nan_to_num_()\n            if count:"), points=6)
edited(
    "06.1",
    "removes_itself",
    ("if count:", "if count:\n                handle.remove()"),
    ("return layer", "handle = layer"),
    ("hook(guard)", "hook(guard)\n    return handle"),
    points=6,
)
edited(
    "06.1",
    "hooks",
    (
        "return layer",
        "for child in layer.children():\n        child.register_forward_pre_hook(guard)\n    return layer",
    ),
    points=6,
)

edited("06.1", "fires_backward", ("register_forward_pre_hook", "register_full_backward_pre_hook"))


@unnamed("06.1", "gradient", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        worst = max(int(torch.isnan(value).sum()) for value in args)
        if worst:
            raise ValueError(f"{name}: {worst} nan")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.1", "gradient", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = np.isnan(value.detach().numpy()).sum()
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.1", "gradient", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        first = int(args[0].isnan().sum())
        for count in (first, *(int(value.isnan().sum()) for value in args[1:])):
            if count:
                raise ValueError(f"{name}: {count} nan")

    return layer.register_forward_pre_hook(guard)
