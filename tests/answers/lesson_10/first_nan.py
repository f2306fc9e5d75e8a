"""Answers to 10.3, `first_nan`."""

from functools import partial

import torch

from tests.answers import alternative, edited, mistake


@alternative("10.3")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if torch.isnan(output).any() and not torch.isnan(args[0]).any() and not found:
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "only_children")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if True:
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@alternative("10.3")
def first_nan(model, x):
    class Found(Exception):
        pass

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            raise Found(name)

    handles = [
        m.register_forward_hook(partial(look, n)) for n, m in model.named_modules() if not list(m.children())
    ]
    try:
        model(x)
    except Found as found:
        return str(found)
    finally:
        for handle in handles:
            handle.remove()


edited(
    "10.3",
    "only_children",
    ("model.named_modules()", "model.named_children()"),
    ("if not list(module.children())", "if True"),
)
edited("10.3", "short_name", ("found.append(name)", 'found.append(name.split(".")[-1])'))
edited(
    "10.3",
    "counts_infinity",
    (
        "output.isnan().any() and not args[0].isnan().any()",
        "not output.isfinite().all() and args[0].isfinite().all()",
    ),
)
edited("10.3", "later_one", ("found[0]", "found[-1]"))
edited("10.3", "last_one", (" and not args[0].isnan().any()", ""), ("found[0]", "found[-1]"))
edited(
    "10.3",
    "late_binding",
    ("look(name, module, args, output)", "look(module, args, output)"),
    ("partial(look, name)", "look"),
)
edited(
    "10.3",
    "never_true",
    ("output.isnan().any() and not args[0].isnan().any()", '(output == float("nan")).any()'),
)
edited(
    "10.3",
    "all_of_them",
    ("output.isnan().any()", "output.isnan().all()"),
    ("args[0].isnan().any()", "args[0].isnan().all()"),
)
edited("10.3", "never_true", ("found[0] if found else None", "None"))
edited("10.3", "returns_list", ("found[0] if found else None", "found"))
edited("10.3", "returns_module", ("found.append(name)", "found.append(module)"))
edited("10.3", "not_none", ("if found else None", 'if found else ""'))
edited("10.3", "nothing_to_take", (" if found else None", ""))
edited("10.3", "changes_output", ("found.append(name)", "found.append(name)\n        return output + 1"))
edited("10.3", "ignores_input", (" and not args[0].isnan().any()", ""))
edited(
    "10.3", "swallows", ("    finally:", "    except Exception:\n        return None\n    finally:"), points=5
)
edited(
    "10.3",
    "wrong_arguments",
    ("look(name, module, args, output)", "look(name, output)"),
    (" and not args[0].isnan().any()", ""),
)


@mistake("10.3", "by_definition")
def first_nan(model, x):
    found, handles = [], []
    flags = {}

    def look(name, module, args, output):
        flags[name] = output.isnan().any() and not args[0].isnan().any()

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((n for n, _ in model.named_modules() if flags.get(n)), None)


@mistake("10.3", "leaves_hooks", points=4)
def first_nan(model, x):
    found = []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(partial(look, name))
    model(x)
    return found[0] if found else None


@mistake("10.3", "no_finally", points=5)
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(partial(look, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return found[0] if found else None


@mistake("10.3", "returns_tuple")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        return (output.isnan().any(), torch.relu(name))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "calls_now")
def first_nan(model, x):
    found, handles = [], []

    def look(name):
        found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(look(name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None
