"""What the tenth strangers tried on lesson 05."""

import torch
from torch.utils._pytree import tree_map

from tests.answers import mistake, unnamed


@unnamed("05.2", "names")
def prove(model, x, skip):
    seen = []
    handles = [
        child.register_forward_hook(lambda module, args, output: seen.append((type(module).__name__, output)))
        for child in model.children()
        if not type(child).__name__.startswith(skip.__name__[:2])
    ]
    try:
        _, returned = model(x)
    finally:
        for handle in handles:
            handle.remove()
    pairs = zip(seen, returned, strict=False)
    return [(name, (output - own).abs().max().item()) for (name, output), own in pairs]


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    flat = direction.reshape(-1)
    return module.register_forward_hook(lambda module, args, output: output + strength * flat)


@mistake("05.5", "grad", points=9)
def every_call(model, x):
    model.zero_grad()
    calls, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            calls[name] = []

            def keep(module, args, output, name=name):
                calls[name].append(
                    tree_map(lambda leaf: leaf.detach() if torch.is_tensor(leaf) else leaf, output)
                )

            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return calls


@mistake("05.5", "swallows_error", points=7)
def every_call(model, x):
    calls, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            calls[name] = []

            def keep(module, args, output, name=name):
                calls[name].append(output.detach())

            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    except OSError as error:
        print("the model failed:", error)
    finally:
        for handle in handles:
            handle.remove()
    return calls


@mistake("05.2", "requires_grad", points=3)
def prove(model, x, skip):
    model.requires_grad_(False)
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(
                    lambda module, args, out: seen.append((type(module).__name__, out))
                )
            )
    try:
        _, returned = model(x)
    finally:
        for handle in handles:
            handle.remove()
    pairs = zip(seen, returned, strict=True)
    return [(name, (out - own).abs().max().item()) for (name, out), own in pairs]
