"""Answers to 05.5, `every_call`."""

from collections import defaultdict
from contextlib import ExitStack
from functools import partial, singledispatch

import torch
from torch.utils._pytree import tree_map

from tests.answers import alternative, edited, mistake


@alternative("05.5")
def every_call(model, x):
    seen = {name: [] for name, module in model.named_modules() if not [*module.children()]}

    def detached(value):
        match value:
            case torch.Tensor():
                return value.detach()
            case tuple() | list():
                return type(value)(map(detached, value))
            case dict():
                return dict(zip(value, map(detached, value.values()), strict=True))
        return value

    with ExitStack() as stack:
        for name, kept in seen.items():

            def keep(module, args, output, kept=kept):
                kept.append(detached(output))

            stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
        model(x)
    return seen


@mistake("05.5", "no_grad_inside")
def every_call(model, x):
    seen = {}
    with ExitStack() as stack, torch.no_grad():
        for name, module in model.named_modules():
            if not list(module.children()):
                kept = seen[name] = []
                stack.enter_context(module.register_forward_hook(lambda m, a, o, kept=kept: kept.append(o)))
        model(x)
    return seen


@alternative("05.5")
def every_call(model, x):
    names = {m: n for n, m in model.named_modules() if len(list(m.children())) == 0}
    seen = {name: [] for name in names.values()}

    def keep(module, args, output):
        seen[names[module]].append(
            tree_map(lambda leaf: leaf.detach().clone() if torch.is_tensor(leaf) else leaf, output)
        )

    handles = [module.register_forward_hook(keep) for module in names]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@alternative("05.5")
def every_call(model, x):
    seen, handles = defaultdict(list), []

    @singledispatch
    def detached(value):
        return value

    detached.register(torch.Tensor, torch.Tensor.detach)
    detached.register(list, lambda value: [*map(detached, value)])
    detached.register(tuple, lambda value: (*map(detached, value),))
    detached.register(dict, lambda value: {key: detached(item) for key, item in value.items()})
    for name, module in model.named_modules():
        if not any(True for _ in module.children()):
            seen[name]
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(detached(o)))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "no_finally", points=7)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


edited(
    "05.5",
    "last_call_only",
    ("seen[name].append(o.detach())", "seen.update({name: [o.detach()]})"),
    of=every_call,
)
edited(
    "05.5",
    "last_call_only",
    ("seen[name] = []", "seen[name] = None"),
    ("seen[name].append(o.detach())", "seen.update({name: o.detach()})"),
    of=every_call,
)
edited("05.5", "runs_again", ("    model(x)\n", "    out = model(x)\n    model(x)\n"), of=every_call)
edited(
    "05.5",
    "idle_missing",
    ("            seen[name] = []\n", ""),
    ("seen[name].append", "seen.setdefault(name, []).append"),
    of=every_call,
)
edited("05.5", "returns_nothing", ("    return seen", ""), of=every_call)
edited("05.5", "late_binding", ("o, name=name:", "o:"), of=every_call)
edited("05.5", "attached", ("append(o.detach())", "append(o)"), of=every_call, points=6)


@mistake("05.5", "first_call_only")
def every_call(model, x):
    seen, handles = {}, []

    def keep(name, module, args, output):
        if not seen[name]:
            seen[name].append(output.detach())

    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(partial(keep, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "shared_list")
def every_call(model, x):
    names = [name for name, module in model.named_modules() if not list(module.children())]
    seen, handles = dict.fromkeys(names, []), []
    for name in names:
        handles.append(
            model.get_submodule(name).register_forward_hook(
                lambda m, a, o, name=name: seen[name].append(o.detach())
            )
        )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "containers_too")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        seen[name] = []
        handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "only_children")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_children():
        seen[name] = []
        handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "class_names")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[type(module).__name__] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o: seen[type(m).__name__].append(o.detach()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "late_binding")
def every_call(model, x):
    seen, handles = defaultdict(list), []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(lambda m, a, o: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return dict(seen)


@mistake("05.5", "leaves_hooks", points=6)
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
    model(x)
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not module.children():
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if module.children() == []:
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if len(module.children()) == 0:
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "removes_others", points=7)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
    return seen


@mistake("05.5", "forward_directly")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model.forward(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "returns_tuple")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: (seen[name].append(o.detach()), o))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "cuts_gradient")
def every_call(model, x):
    seen, handles = {}, []

    def keep(name, module, args, output):
        output = output.detach()
        seen[name].append(output)
        return output

    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(partial(keep, name)))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "calls_now")
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        seen[name] = []
        module.register_forward_hook(seen[name].append(name))
    model(x)
    return seen


@mistake("05.5", "wrong_arguments")
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        seen[name] = []
        module.register_forward_hook(lambda output, name=name: seen[name].append(output))
    model(x)
    return seen


# Nested outputs.
_TUPLE = "            return tuple(detached(item) for item in value)\n"
_LIST = "            return [detached(item) for item in value]\n"
_DICT = "            return {key: detached(item) for key, item in value.items()}\n"
edited("05.5", "detaches_nested", ("append(detached(output))", "append(output.detach())"), points=8)
edited(
    "05.5",
    "detaches_nested",
    (
        "append(detached(output))",
        "append(tuple(o.detach() for o in output) if type(output) is tuple else detached(output))",
    ),
    points=8,
)
edited(
    "05.5",
    "detaches_nested",
    ("if isinstance(value, torch.Tensor):", "if not isinstance(value, dict | list | tuple):"),
    points=8,
)
edited(
    "05.5",
    "skips_nested",
    (
        "        seen[name].append",
        "        if isinstance(output, torch.Tensor):\n            seen[name].append",
    ),
    points=8,
)
edited(
    "05.5",
    "attached_inside",
    ("append(detached(output))", "append(output.detach() if torch.is_tensor(output) else output)"),
    points=8,
)
edited("05.5", "attached_inside", (_LIST, "            return value\n"), points=8)
edited(
    "05.5",
    "keeps_part",
    (
        "append(detached(output))",
        "append(output.detach() if torch.is_tensor(output) else output[0].detach())",
    ),
    points=8,
)
edited(
    "05.5",
    "keeps_part",
    (
        "        seen[name].append",
        "        while not torch.is_tensor(output):\n            output = next(iter(output.values() if isinstance(output, dict) else output))\n        seen[name].append",
    ),
    points=8,
)
edited("05.5", "other_types", (_TUPLE, _LIST), points=8)
edited("05.5", "other_types", (_LIST, _TUPLE), points=8)
edited("05.5", "keys_lost", (_DICT, "            return [*map(detached, value)]\n"), points=8)
edited("05.5", "keys_lost", (_DICT, "            return (*map(detached, value.values()),)\n"), points=8)
edited(
    "05.5",
    "other_structure",
    (_TUPLE, "            return tuple(detached(item) for item in value if item is not None)\n"),
    points=8,
)
edited(
    "05.5",
    "other_structure",
    ("    def detached", "    def tensors"),
    (
        f"            return value.detach()\n        if isinstance(value, dict):\n{_DICT}        if isinstance(value, list):\n"
        f"{_LIST}        if isinstance(value, tuple):\n{_TUPLE}        return value\n",
        "            yield value.detach()\n        elif isinstance(value, dict | tuple | list):\n"
        "            for item in value.values() if isinstance(value, dict) else value:\n"
        "                yield from tensors(item)\n",
    ),
    (
        "        seen[name].append(detached(output))\n",
        "        found, kind = [*tensors(output)], type(output)\n"
        "        one = dict(enumerate(found)) if kind is dict else tuple(found) if kind is tuple else found[0]\n"
        "        seen[name].append(one)\n",
    ),
    points=8,
)
edited(
    "05.5",
    "keys_lost",
    (
        f"        if isinstance(value, dict):\n{_DICT}        if isinstance(value, list):\n"
        f"{_LIST}        if isinstance(value, tuple):\n{_TUPLE}",
        "        if isinstance(value, list):\n            return [*map(detached, value)]\n"
        "        if hasattr(value, '__iter__') and not isinstance(value, str):\n"
        "            return tuple(map(detached, value))\n",
    ),
    points=8,
)
