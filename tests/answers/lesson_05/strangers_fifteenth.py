"""Answers to lesson 05 of strangers who had not read the checks, in their fifteenth round."""

import copy

import torch
from torch.utils._pytree import tree_map

from tests.answers import mistake


# "The hook changes nothing": neither the tensors that pass.
@mistake("05.1", "marks_tensors", points=2)
def capture(module, seen):
    def hook(module, args, output):
        if output.requires_grad:
            output.retain_grad()
        seen.append((args[0], output))

    return module.register_forward_hook(hook)


@mistake("05.1", "marks_tensors", points=2)
def capture(module, seen):
    def hook(module, args, output):
        if args[0].requires_grad:
            args[0].retain_grad()
        seen.append((args[0], output.detach()))

    return module.register_forward_hook(hook)


@mistake("05.1", "marks_tensors", points=2)
def capture(module, seen):
    def hook(module, args, output):
        output.came_from = args[0]
        seen.append((args[0], output))

    return module.register_forward_hook(hook)


@mistake("05.2", "forward_directly", points=3)
def prove(model, x, skip):
    seen = []
    twin = copy.deepcopy(model)
    for child in twin.children():
        if not isinstance(child, skip):
            child.register_forward_hook(lambda m, args, out: seen.append((type(m).__name__, out)))
    _, returned = twin(x)
    return [(n, (out - own).abs().max().item()) for (n, out), own in zip(seen, returned, strict=True)]


@mistake("05.5", "shared_dict")
def every_call(model, x, result={}):
    def cut(value):
        return value.detach() if isinstance(value, torch.Tensor) else value

    handles = []
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                calls = result[name] = []
                handles.append(
                    module.register_forward_hook(
                        lambda m, args, out, calls=calls: calls.append(tree_map(cut, out))
                    )
                )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return result


@mistake("05.5", "shared_dict", points=8)
def every_call(model, x, result={}):
    def cut(value):
        return value.detach() if isinstance(value, torch.Tensor) else value

    result.clear()
    handles = []
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                calls = result[name] = []
                handles.append(
                    module.register_forward_hook(
                        lambda m, args, out, calls=calls: calls.append(tree_map(cut, out))
                    )
                )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return result
