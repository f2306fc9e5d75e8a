"""Right answers to 14.1, `outputs_of`, that take their hooks off themselves, or register none."""

from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import partial

import torch
from torch.utils._pytree import tree_map, tree_map_only

from hookedu import record
from tests.answers import alternative, edited


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    with record(model, names) as recording:
        model(*args, **kwargs)
    return {name: recording[name].calls[-1].activation for name in names if name not in recording.missed}


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, output)

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    calls = defaultdict(list)

    def copied(value):
        if isinstance(value, torch.Tensor):
            return torch.empty_like(value).copy_(value).detach()
        if isinstance(value, list):
            return [copied(item) for item in value]
        if isinstance(value, tuple):
            return tuple(copied(item) for item in value)
        if isinstance(value, dict):
            return dict((key, copied(item)) for key, item in value.items())
        return value

    @contextmanager
    def watching():
        handles = []
        try:
            for name in names:
                module = model.get_submodule(name)
                handles.append(
                    module.register_forward_hook(lambda m, a, o, name=name: calls[name].append(copied(o)))
                )
            yield
        finally:
            while handles:
                handles.pop().remove()

    with watching():
        model(*args, **kwargs)
    return {name: outputs[-1] for name, outputs in calls.items()}


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    seen, patched = {}, []

    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, (list, tuple)):
            items = [copied(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else value

    def watched(name, forward, *args, **kwargs):
        output = forward(*args, **kwargs)
        seen[name] = copied(output)
        return output

    try:
        for name in names:
            module = model.get_submodule(name)
            module.forward = partial(watched, name, module.forward)
            patched.append(module)
        model(*args, **kwargs)
    finally:
        for module in patched:
            del module.forward
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        if hasattr(value, "detach"):
            return value.detach().clone()
        if hasattr(value, "items"):
            return type(value)((key, copied(item)) for key, item in value.items())
        if isinstance(value, (tuple, list)):
            return type(value)(map(copied, value))
        return value

    seen = dict()
    handles = {}
    try:
        for name in names:

            def hook(module, args, kwargs, output, *, name=name):
                seen[name] = copied(output)

            layer = model.get_submodule(name)
            handles[name] = layer.register_forward_hook(hook, with_kwargs=True)
        model(*args, **kwargs)
        return seen
    finally:
        for handle in handles.values():
            handle.remove()


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    recorder = record(model, list(names), copy=True)
    with recorder:
        model(*args, **kwargs)
    outputs = {}
    for name in names:
        with suppress(RuntimeError):  # it never ran
            outputs[name] = recorder[name].calls[-1].activation
    return outputs


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    tensor, mapping, sequence = torch.Tensor, dict, (tuple, list)

    def copied(v):
        return (
            v.detach().clone()
            if isinstance(v, tensor)
            else {k: copied(x) for k, x in v.items()}
            if isinstance(v, mapping)
            else type(v)(copied(x) for x in v)
            if isinstance(v, sequence)
            else v
        )

    seen, handles = {}, []

    def hook_of(name):
        return lambda module, args, output: seen.update([(name, copied(output))])

    try:
        handles += (model.get_submodule(n).register_forward_hook(hook_of(n), prepend=True) for n in names)
        model(*args, **kwargs)
    finally:
        [h.remove() for h in handles]
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    layers = [(name, model.get_submodule(name)) for name in names]  # raises before there is any hook

    def keep(module, args, output):
        for name, layer in layers:
            if layer is module:
                seen[name] = tree_map_only(
                    torch.Tensor, torch.clone, tree_map_only(torch.Tensor, torch.Tensor.detach, output)
                )

    handles = [layer.register_forward_hook(keep) for _, layer in layers]
    try:
        model(*args, **kwargs)
    finally:
        for handle in reversed(handles):
            handle.remove()
    return seen


edited("14.1", None, ("value.detach().clone()", "value.clone().detach()"))
edited("14.1", None, ("isinstance(value, (tuple, list))", "isinstance(value, tuple | list)"))
edited(
    "14.1",
    None,
    (
        "        model(*args, **kwargs)",
        "        with torch.inference_mode():\n            model(*args, **kwargs)",
    ),
)
