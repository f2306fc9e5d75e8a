"""Wrong answers to 05.5, `every_call`."""

from collections import defaultdict
from contextlib import ExitStack
from functools import partial

import torch

from tests.answers import edited, mistake


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
