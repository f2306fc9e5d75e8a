"""Answers to lesson 05 of strangers who had not read the checks, in their sixteenth round."""

from functools import partial

import torch

from tests.answers import mistake


# "However they are nested": a dictionary may lie in a tuple or list.
@mistake("05.5", "attached_inside", points=8)
def every_call(model, x):
    def cut(value):
        if torch.is_tensor(value):
            return value.detach()
        if isinstance(value, dict):
            return {key: cut(item) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            inside = torch.Tensor, tuple, list
            return type(value)(cut(item) if isinstance(item, inside) else item for item in value)
        return value

    calls, handles = {}, []

    def keep(name, module, args, output):
        calls[name].append(cut(output))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                calls[name] = []
                handles.append(module.register_forward_hook(partial(keep, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return calls
