"""Answers to 14.1, `outputs_of`."""

import copy
from collections import defaultdict
from contextlib import ExitStack, contextmanager, suppress
from functools import partial, singledispatch

import torch
from torch import nn
from torch.utils._pytree import tree_map, tree_map_only

from hookedu import record
from tests.answers import alternative, edited, mistake, unnamed


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
    modules = dict(model.named_modules())
    seen = {}
    with ExitStack() as stack:
        for name in names:
            hook = lambda module, args, output, name=name: seen.update(  # noqa: E731
                {name: tree_map_only(torch.Tensor, lambda t: t.detach().clone(), output)}
            )
            stack.enter_context(modules[name].register_forward_hook(hook))
        model(*args, **kwargs)
    return seen


@alternative("14.1")
@torch.no_grad()
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        match value:
            case torch.Tensor():
                return value.clone()
            case dict():
                return dict(zip(value, map(copied, value.values()), strict=True))
            case tuple():
                return (*map(copied, value),)
            case list():
                return [*map(copied, value)]
        return value

    seen = {}
    layers = {model.get_submodule(name): name for name in names}

    def keep(module, args, output):
        seen[layers[module]] = copied(output)

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(keep).remove)
        model(*args, **kwargs)
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    class Keeper:
        def __init__(self, seen, name):
            self.seen, self.name = seen, name

        def copied(self, value):
            if torch.is_tensor(value):
                return value.clone().detach()
            if type(value) in (tuple, list):
                return type(value)(self.copied(item) for item in value)
            if isinstance(value, dict):
                return {k: self.copied(v) for k, v in value.items()}
            return value

        def __call__(self, module, args, output):
            self.seen[self.name] = self.copied(output)

    seen = {}
    with ExitStack() as stack:
        [
            stack.enter_context(model.get_submodule(name).register_forward_hook(Keeper(seen, name)))
            for name in names
        ]
        _ = model(*args, **kwargs)
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
    @singledispatch
    def copied(value):
        return value

    @copied.register
    def _(value: torch.Tensor):
        return value.detach().clone()

    @copied.register(tuple)
    @copied.register(list)
    def _(value):
        return value.__class__(map(copied, value))

    @copied.register
    def _(value: dict):
        return {key: copied(item) for key, item in value.items()}

    seen = {}
    wanted = {id(model.get_submodule(name)): name for name in names}

    def everywhere(module, args, output):
        if id(module) in wanted:
            seen[wanted[id(module)]] = copied(output)

    with nn.modules.module.register_module_forward_hook(everywhere):
        model(*args, **kwargs)
    return seen


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
    def on_numpy(value):
        if isinstance(value, torch.Tensor):
            return torch.from_numpy(value.detach().numpy().copy())
        if isinstance(value, dict):
            return {key: on_numpy(item) for key, item in value.items()}
        return type(value)(map(on_numpy, value)) if isinstance(value, (tuple, list)) else value

    seen = {}
    with ExitStack() as stack:
        for name in names:
            module = model
            for part in name.split("."):
                module = getattr(module, part) if hasattr(module, part) else module[part]
            stack.enter_context(
                module.register_forward_hook(
                    lambda m, a, out, name=name: seen.__setitem__(name, on_numpy(out)), always_call=True
                )
            )
        model(*args, **kwargs)
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    """deepcopy copies structures; its memo keeps what is no tensor, and takes detached tensors."""

    def copied(value):
        leaves = []

        def visit(v):
            if isinstance(v, torch.Tensor):
                leaves.append(v)
                return len(leaves) - 1, Leaf
            if isinstance(v, dict):
                return {k: visit(x) for k, x in v.items()}
            if isinstance(v, (list, tuple)):
                return type(v)([visit(x) for x in v])
            return v

        class Leaf:
            pass

        def back(v):
            if isinstance(v, tuple) and len(v) == 2 and v[1] is Leaf:
                return leaves[v[0]].detach().clone()
            if isinstance(v, dict):
                return {k: back(x) for k, x in v.items()}
            return type(v)([back(x) for x in v]) if isinstance(v, (list, tuple)) else v

        return back(visit(value))

    seen = {}
    with ExitStack() as stack:
        for name in names:
            hook = partial(lambda name, m, a, out: seen.update({name: copied(out)}), name)
            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(*args, **kwargs)
    return seen


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
    seen = {}

    def copied(value):
        if isinstance(value, torch.Tensor):
            with torch.no_grad():
                return value.clone()
        if isinstance(value, dict):
            new = {}
            for key in value:
                new[key] = copied(value[key])
            return new
        if isinstance(value, list) or isinstance(value, tuple):
            new = []
            for item in value:
                new.append(copied(item))
            return new if isinstance(value, list) else tuple(new)
        return value

    def make_hook(name):
        def hook(module, args, output):
            seen[name] = copied(output)

        return hook

    stack = ExitStack()
    with stack:
        for name in names:
            stack.enter_context(model.get_submodule(name).register_forward_hook(make_hook(name)))
        model(*args, **kwargs)
    return seen


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach() + 0 if value.dtype != torch.bool else value.detach().clone()
        if isinstance(value, dict):
            return {**{key: copied(item) for key, item in value.items()}}
        if isinstance(value, tuple):
            return tuple([copied(item) for item in value])
        if isinstance(value, list):
            return list(copied(item) for item in value)
        return value

    def run(names):
        if not names:
            model(*args, **kwargs)
            return {}
        name, *others = names
        mine = []
        with model.get_submodule(name).register_forward_hook(lambda m, a, out: mine.append(copied(out))):
            rest = run(others)
        return rest | ({name: mine[-1]} if mine else {})

    return run(list(names))


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    from torch.utils._pytree import tree_flatten, tree_unflatten

    seen = {}

    def keep(module, args, output, name):
        leaves, spec = tree_flatten(output)
        leaves = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        seen[name] = tree_unflatten(leaves, spec)

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if name in names:
                stack.enter_context(module.register_forward_hook(partial(keep, name=name)))
        model(*args, **kwargs)
    return seen


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
    missing = object()
    last = dict.fromkeys(names, missing)

    def copied(value):
        if isinstance(value, torch.Tensor):
            return torch.tensor(value.tolist(), dtype=value.dtype)
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(copied(item) for item in value)
        return value

    def keep(name):
        def hook(module, args, output):
            nonlocal last
            last = last | {name: copied(output)}

        return hook

    with ExitStack() as stack:
        for name in last:
            stack.enter_context(model.get_submodule(name).register_forward_hook(keep(name)))
        model(*args, **kwargs)
    return {name: value for name, value in last.items() if value is not missing}


@alternative("14.1")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        memo = {}

        def detach(v):
            if isinstance(v, torch.Tensor):
                return v.detach()
            if isinstance(v, dict):
                return {k: detach(x) for k, x in v.items()}
            if isinstance(v, (tuple, list)):
                return type(v)(detach(x) for x in v)
            memo[id(v)] = v  # deepcopy leaves these alone
            return v

        return copy.deepcopy(detach(value), memo)

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
edited("14.1", "mode", ("    seen = {}\n", "    seen = {}\n    model.eval()\n"), points=7)
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
    "first_call",
    ("seen[name] = copied(output)", "if name not in seen:\n            seen[name] = copied(output)"),
)
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
edited("14.1", "attached", (".clone() if", ".clone().requires_grad_(value.requires_grad) if"), points=7)
edited("14.1", "copies_others", ("else value", "else copy.copy(value)"))
edited(
    "14.1",
    "outputs",
    ("else value", "else torch.tensor(value) if isinstance(value, int) else value"),
    named=False,
)
edited("14.1", "outputs", ("for item in value)", "for item in value if item is not None)"), named=False)
edited("14.1", "changes_output", ("value.detach().clone()", "value.detach_().clone()"))
edited("14.1", "overwritten", ("value.detach().clone()", "value.detach().contiguous()"))
edited("14.1", "process", ("    seen = {}\n", "    seen = {}\n    torch.set_grad_enabled(False)\n"), points=7)
edited(
    "14.1",
    "others",
    ("    return seen", "    model.get_submodule(names[0])._forward_hooks.clear()\n    return seen"),
    points=7,
)


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
