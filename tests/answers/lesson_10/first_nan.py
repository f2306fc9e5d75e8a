"""Answers to 10.3, `first_nan`."""

from functools import partial

import torch

from tests.answers import alternative, mistake


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


@alternative("10.3")
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


@mistake("10.3", "only_children")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_children():
            if True:
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "short_name")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name.split(".")[-1])

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "counts_infinity")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if not output.isfinite().all() and args[0].isfinite().all():
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


@mistake("10.3", "later_one")
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


@mistake("10.3", "later_one")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[-1] if found else None


@mistake("10.3", "last_one")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[-1] if found else None


@mistake("10.3", "late_binding")
def first_nan(model, x):
    found, handles = [], []

    def look(module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(look))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "never_true")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if (output == float("nan")).any():
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


@mistake("10.3", "never_true")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return None


@mistake("10.3", "returns_list")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


@mistake("10.3", "returns_module")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(module)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "not_none")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else ""


@mistake("10.3", "nothing_to_take")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0]


@mistake("10.3", "changes_output")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)
        return output + 1

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "ignores_input", points=5)
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any():
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


@mistake("10.3", "never_true")
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().all() and not args[0].isnan().all():
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


@mistake("10.3", "swallows", points=5)
def first_nan(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        if output.isnan().any() and not args[0].isnan().any():
            found.append(name)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    except Exception:
        return None
    finally:
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


@mistake("10.3", "wrong_arguments")
def first_nan(model, x):
    found, handles = [], []

    def look(name, output):
        if output.isnan().any():
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
