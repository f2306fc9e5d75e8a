"""Answers to 09.1, `conv_groups`."""

from collections import defaultdict
from contextlib import ExitStack
from functools import partial

import torch
from torch import nn

from tests.answers import alternative, mistake


@alternative("09.1")
def conv_groups(model, x):
    groups = {}

    def keep(module, args, output):
        groups.setdefault(module.weight.shape, []).append(output.detach().clone())

    with ExitStack() as stack:
        for module in filter(lambda m: isinstance(m, nn.Conv2d), model.modules()):
            stack.enter_context(module.register_forward_hook(keep))
        with torch.no_grad():
            model(x)
    return groups


@alternative("09.1")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(torch.tensor(output.tolist(), dtype=output.dtype))

    for name, module in model.named_modules():
        if issubclass(type(module), nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        [handle.remove() for handle in handles]
    return groups


@mistake("09.1", "overwritten")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "overwritten")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output)

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return {shape: [output.detach().clone() for output in outputs] for shape, outputs in groups.items()}


@mistake("09.1", "plus_equals")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach())

    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "last_call_only")
def conv_groups(model, x):
    groups, handles = {}, []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)] = output.detach().clone()

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "last_call_only")
def conv_groups(model, x):
    groups, handles = {}, []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)] = [output.detach()]

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "runs_twice")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    print(model(x).shape)
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "kernel_size")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[module.kernel_size].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "output_shape")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(output.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "by_name")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(name, module, args, output):
        groups[name].append(output.detach().clone())

    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(partial(keep, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "only_children")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.children():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "late_binding")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            shape = tuple(module.weight.shape)
            handles.append(
                module.register_forward_hook(lambda m, args, out: groups[shape].append(out.detach().clone()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "every_module")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "returns_nothing")
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(keep)
    model(x)


@mistake("09.1", "attached", points=7)
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


@mistake("09.1", "cuts_gradient")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())
        return output.detach().clone()

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


@mistake("09.1", "eval_mode")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "hooks", points=7)
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(keep)
    model(x)
    return groups


@mistake("09.1", "others", points=7)
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_hook(keep)
        model(x)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
    return groups


@mistake("09.1", "unrestored", points=7)
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups
