"""Wrong answers to 14.1, `outputs_of`: what comes out is not what was asked for."""

import copy
from contextlib import ExitStack
from functools import partial

import torch
from torch.utils._pytree import tree_map_only

from hookedu import record
from tests.answers import edited, mistake, unnamed

edited("14.1", "attached", ("value.detach().clone()", "value.clone()"), points=7)
edited("14.1", "overwritten", ("value.detach().clone()", "value.detach()"))
edited("14.1", "overwritten", ("value.detach().clone()", "value.data"))
edited("14.1", "late_binding", ("partial(tap, name)", "lambda *call: tap(name, *call)"))
edited("14.1", "no_kwargs", ("(*args, **kwargs)\n    return", "(*args)\n    return"))
edited("14.1", "no_return", ("    return seen", "    print(seen.keys())"))
edited("14.1", "not_a_dict", ("return seen", "return list(seen.values())"))
edited("14.1", "wrong_keys", ("seen[name] = copied", "seen[module] = copied"))
edited("14.1", "first_call", ("seen[name] = copied(output)", "seen.setdefault(name, copied(output))"))
edited(
    "14.1", "all_calls", ("seen[name] = copied(output)", "seen.setdefault(name, []).append(copied(output))")
)
edited("14.1", "not_run", ("seen = {}", "seen = dict.fromkeys(names)"))
edited("14.1", "not_run", ("    return seen", "    return {name: seen.get(name) for name in names}"))
edited("14.1", "indexes_unused", ("    return seen", "    return {name: seen[name] for name in names}"))
edited(
    "14.1",
    "tuples_as_lists",
    ("type(value)(copied(item) for item in value)", "[copied(item) for item in value]"),
)
edited(
    "14.1",
    "tuples_as_lists",
    ("type(value)(copied(item) for item in value)", "tuple(copied(item) for item in value)"),
)
edited("14.1", "wrong_arguments", ("def tap(name, module, args, output)", "def tap(name, output)"))
edited("14.1", "dotted_name", ("model.get_submodule(name)", "getattr(model, name)"))
edited("14.1", "only_children", ("model.get_submodule(name)", "dict(model.named_children())[name]"))
edited(
    "14.1",
    "same_containers",
    (
        "        if isinstance(value, dict):\n            return {key: copied(item) for key, item in value.items()}\n",
        "",
    ),
)
edited("14.1", "same_containers", ("copied(item) for key, item", "item for key, item"))
edited("14.1", "outputs", ("value.detach().clone()", "value.detach().clone().float()"), named=False)
edited("14.1", "outputs", ("torch.Tensor) else value", "torch.Tensor) else None"), named=False)
edited("14.1", "nothing_kept", ("    return seen", "    return {}"))


@mistake("14.1", "tuple_as_tensor")
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: out.detach().clone()})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "others_as_tensors")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(copied(item) for item in value)
        return value.detach().clone()

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


@mistake("14.1", "deep_copy")
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: copy.deepcopy(out)})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "copies_others")
@torch.no_grad()
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: copy.deepcopy(out)})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "same_containers")
def outputs_of(model, names, *args, **kwargs):
    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: out})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "first_item")
def outputs_of(model, names, *args, **kwargs):
    seen = {}

    def first(value):
        while not isinstance(value, torch.Tensor):
            value = list(value.values())[0] if isinstance(value, dict) else value[0]
        return value.detach().clone()

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, out, name=name: seen.update({name: first(out)})
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "missing")
def outputs_of(model, names, *args, **kwargs):
    seen = {}

    def keep(name, module, args, output):
        if isinstance(output, torch.Tensor):
            seen[name] = output.detach().clone()

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        model(*args, **kwargs)
    return seen


@mistake("14.1", "calls_now")
def outputs_of(model, names, *args, **kwargs):
    seen = {}

    def keep(name):
        seen[name] = model.get_submodule(name)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(model.get_submodule(name).register_forward_hook(keep(name)))
        model(*args, **kwargs)
    return seen


@mistake("14.1", "wrong_keys")
def outputs_of(model, names, *args, seen={}, **kwargs):  # noqa: B006
    def copied(value):
        return tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)

    def keep(name, module, args, output):
        seen[name] = copied(output)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        model(*args, **kwargs)
    return seen


@unnamed("14.1", "outputs")
def outputs_of(model, names, *args, **kwargs):
    """The input of each layer."""
    seen = {}
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                model.get_submodule(name).register_forward_hook(
                    lambda m, args, out, name=name: seen.update(
                        {name: args[0].detach().clone() if args else None}
                    )
                )
            )
        model(*args, **kwargs)
    return seen


@mistake("14.1", "indexes_unused")
def outputs_of(model, names, *args, **kwargs):
    with record(model, names) as recording:
        model(*args, **kwargs)
    return {name: recording[name].calls[-1].activation for name in names}


edited(
    "14.1",
    "first_call",
    ("seen[name] = copied(output)", "if name not in seen:\n            seen[name] = copied(output)"),
)
edited("14.1", "attached", (".clone() if", ".clone().requires_grad_(value.requires_grad) if"), points=7)
edited("14.1", "copies_others", ("else value", "else copy.copy(value)"))
edited(
    "14.1",
    "outputs",
    ("else value", "else torch.tensor(value) if isinstance(value, int) else value"),
    named=False,
)
edited("14.1", "outputs", ("for item in value)", "for item in value if item is not None)"), named=False)
edited("14.1", "overwritten", ("value.detach().clone()", "value.detach().contiguous()"))


@mistake("14.1", "calls_together")
def outputs_of(model, names, *args, **kwargs):
    with record(model, names) as recording:
        model(*args, **kwargs)
    return recording.activations


@mistake("14.1", "choose_call")
def outputs_of(model, names, *args, **kwargs):
    with record(model, names) as recording:
        model(*args, **kwargs)
    return {name: recording[name].activation for name in names if recording[name].calls}


@mistake("14.1", "last_item")
def outputs_of(model, names, *args, **kwargs):
    with record(model, names) as recording:
        model(*args, **kwargs)
    return {
        name: value[-1] if isinstance(value, tuple) and value else value
        for name, value in recording.activations.items()
    }
