"""Wrong answers to 14.1, `outputs_of`: what they do besides, such as hooks that stay, lost errors, a changed model."""

import copy
from contextlib import ExitStack, suppress
from functools import partial

import torch
from torch.utils._pytree import tree_map_only

from hookedu import record
from tests.answers import edited, mistake

edited(
    "14.1",
    "changes_output",
    ("seen[name] = copied(output)", "seen[name] = copied(output)\n        return seen[name]"),
)
edited("14.1", "runs_twice", ("    return seen", "    model(*args, **kwargs)\n    return seen"), points=7)
edited(
    "14.1",
    "calls_forward",
    ("        model(*args, **kwargs)", "        model.forward(*args, **kwargs)"),
    points=7,
)
edited("14.1", "mode", ("    seen = {}\n", "    seen = {}\n    model.eval()\n"), points=7)


@mistake("14.1", "shares_memory", points=7)
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with record(model, names, copy=False) as recording, torch.no_grad():
        with record(model, names) as copied:
            model(*args, **kwargs)
    for name in names:
        if name not in copied.missed:
            kept = copied[name].calls[-1].activation
            plain = isinstance(kept, torch.Tensor) and name.startswith("blocks")
            seen[name] = recording[name].activation if plain else kept
    return seen


@mistake("14.1", "leaves_on_bad_name", points=7)
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        return tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)

    seen, handles = {}, []
    for name in names:
        layer = model.get_submodule(name)
        handles.append(layer.register_forward_hook(lambda m, a, o, n=name: seen.update({n: copied(o)})))
    try:
        model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("14.1", "leaves_on_bad_name", points=7)
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        return tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)

    seen = {}
    handles = []
    for name in names:
        layer = model.get_submodule(name)
        handles.append(layer.register_forward_hook(lambda m, a, o, n=name: seen.update({n: copied(o)})))
    model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    return seen


@mistake("14.1", "unrestored", points=7)
def outputs_of(model, names, *args, **kwargs):
    layers = {name: model.get_submodule(name) for name in names}
    seen = {}

    def keep(name, module, args, output):
        seen[name] = tree_map_only(torch.Tensor, lambda t: t.detach().clone(), output)

    handles = [layer.register_forward_hook(partial(keep, name)) for name, layer in layers.items()]
    model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    return seen


@mistake("14.1", "runs_twice")
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    for name in names:
        with record(model, name) as recording:
            model(*args, **kwargs)
        if name not in recording.missed:
            seen[name] = recording[name].calls[-1].activation
    return seen


@mistake("14.1", "changes_output")
def outputs_of(model, names, *args, **kwargs):
    """It replaces tensors inside of the model's own lists and dictionaries."""

    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, dict):
            for key in value:
                value[key] = copied(value[key])
            return dict(value)
        if isinstance(value, list):
            for n, item in enumerate(value):
                value[n] = copied(item)
            return list(value)
        if isinstance(value, tuple):
            return tuple(map(copied, value))
        return value

    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: copied(out)})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "hooks", points=7)
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with suppress(AttributeError):
        model.get_submodule(names[-1]).register_forward_hook(lambda m, a, out: None)
    with record(model, [name for name in names if name != "stem.nope"]) as recording:
        model(*args, **kwargs)
    for name in names:
        if name not in recording.missed:
            seen[name] = recording[name].calls[-1].activation
    return seen


@mistake("14.1", "calls_forward", points=7)
def outputs_of(model, names, *args, **kwargs):
    model, seen = copy.deepcopy(model), {}
    for name in names:
        model.get_submodule(name).register_forward_hook(
            lambda m, a, out, name=name: seen.update(
                {name: tree_map_only(torch.Tensor, lambda t: t.detach().clone(), out)}
            )
        )
    model(*args, **kwargs)
    return seen


edited(
    "14.1",
    "swallows",
    (
        "        model(*args, **kwargs)",
        "        with suppress(Exception):\n            model(*args, **kwargs)",
    ),
    points=7,
)
edited("14.1", "argument", ("for name in names:", "while names:\n            name = names.pop()"), points=7)
edited("14.1", "changes_output", ("value.detach().clone()", "value.detach_().clone()"))
edited("14.1", "process", ("    seen = {}\n", "    seen = {}\n    torch.set_grad_enabled(False)\n"), points=7)
edited(
    "14.1",
    "others",
    ("    return seen", "    model.get_submodule(names[0])._forward_hooks.clear()\n    return seen"),
    points=7,
)
