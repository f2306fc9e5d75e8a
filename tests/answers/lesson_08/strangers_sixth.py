"""Further wrong answers to the exercises of lesson 08 that readers wrote without knowing the checks."""

# Edited answers use some of these imports.
import contextlib  # noqa: F401
import re  # noqa: F401
from functools import partial  # noqa: F401

import torch  # noqa: F401

from hookedu import list_hooks  # noqa: F401
from tests.answers import edited, mistake, unnamed


@unnamed("08.1", "order")
def in_order(events):
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]

    def place(event):
        kind, layer = event
        if kind in down:
            return 200 - 10 * layer + down.index(kind)
        return 2 * layer + (kind == "forward")

    return sorted(events, key=place)


edited("08.2", "grad", ("    shapes = {}\n", "    shapes = {}\n    model.zero_grad()\n"), points=4)
edited(
    "08.2",
    "requires_grad",
    ("    try:\n", "    model.requires_grad_(False)\n    try:\n"),
    ("    finally:\n", "    finally:\n        model.requires_grad_(True)\n"),
    points=4,
)
edited(
    "08.2",
    "changes_outputs",
    ("tuple(output.shape)\n", "tuple(output.shape)\n        output.requires_grad and output.retain_grad()\n"),
    points=4,
)

edited(
    "08.3",
    "remembers",
    ("(model, handles)", "(model, handles, known=set())"),
    ("known = {handle.id for handle in handles}", "known |= {handle.id for handle in handles}"),
)


@unnamed("08.3", "found")
def remove_leaked(model, handles):
    known, names = {handle.id for handle in handles}, []
    for path, module in model.named_modules():
        forward = (module._forward_pre_hooks, module._forward_hooks)
        for table in (*forward, module._backward_pre_hooks, module._backward_hooks):
            for identity, hook in list(table.items()):
                if identity not in known and "partial" not in repr(hook):
                    del table[identity]
                    names.append(path)
    return names


_WRAPPED = "    def wrapped(m, args, output):\n        {}\n\n    handles[name] = module.register_forward_hook(wrapped)"
edited(
    "08.4",
    "drops_result",
    (
        "    handles[name] = module.register_forward_hook(hook)",
        _WRAPPED.format(
            "new = hook(m, args, output)\n        return new if isinstance(new, torch.Tensor) else None"
        ),
    ),
    points=3,
)
edited(
    "08.4",
    "drops_result",
    (
        "    handles[name] = module.register_forward_hook(hook)",
        _WRAPPED.format(
            "new = hook(m, args, output)\n        return None if isinstance(new, tuple) else new"
        ),
    ),
    points=3,
)
edited(
    "08.4",
    "silent",
    (
        "    handles[name] = module.register_forward_hook(hook)",
        _WRAPPED.format(
            "return hook(m, args, output) if torch.is_grad_enabled() or not m.training else None"
        ),
    ),
)


@mistake("08.4", "one_for_two", points=3)
def register_once(handles, name, module, hook):
    for handle in handles.values():
        if module._forward_hooks.get(handle.id) is hook:
            handles[name] = handle
            return handle
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]
