"""Right answers to 14.1, `outputs_of`, whose hooks come off at the end of a `with` block."""

import copy
from contextlib import ExitStack
from functools import partial, singledispatch

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from tests.answers import alternative


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
