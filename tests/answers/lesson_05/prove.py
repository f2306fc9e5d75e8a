"""Answers to 05.2, `prove`."""

from contextlib import ExitStack

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("05.2")
def prove(model, x, skip):
    seen = []
    with ExitStack() as stack:
        for child in model.children():
            if type(child) is not skip:
                stack.enter_context(
                    child.register_forward_hook(
                        lambda module, args, output: seen.append((module._get_name(), output))
                    )
                )
        _, returned = model(x)
    return [(name, float(torch.max(torch.abs(a - b)))) for (name, a), b in zip(seen, returned, strict=True)]


@alternative("05.2")
def prove(model, x, skip):
    names, outputs, handles = [], [], []

    def keep(module, args, output):
        names.append(type(module).__name__)
        outputs.append(output.detach())

    for name, child in model.named_children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(keep))
    try:
        out, returned = model(x)
    finally:
        for handle in handles:
            handle.remove()
    return [[n, (o - r).abs().max()] for n, o, r in zip(names, outputs, returned)]


@mistake("05.2", "ignores_skip")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        handles.append(
            child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
        )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "order_of_children")
def prove(model, x, skip):
    seen, handles = {}, []
    children = [child for child in model.children() if not isinstance(child, skip)]
    for child in children:
        handles.append(child.register_forward_hook(lambda m, args, output: seen.update({m: output})))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(type(c).__name__, (seen[c] - own).abs().max().item()) for c, own in zip(children, returned)]


@mistake("05.2", "late_binding")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(
                    lambda m, args, output: seen.append((type(child).__name__, output))
                )
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "no_entries")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    for handle in handles:
        handle.remove()
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "no_entries")
def prove(model, x, skip):
    out, returned = model(x)
    seen = []
    for child in model.children():
        with child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output))):
            pass
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "returns_nothing")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    difference = [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@unnamed("05.2", "names")
def prove(model, x, skip):
    return [("Linear", 0.0), ("Linear", 0.0), ("ReLU", 0.0)]


@mistake("05.2", "always_zero")
def prove(model, x, skip):
    first, second, handles = [], [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, args, output: first.append((m, output))))
            handles.append(child.register_forward_hook(lambda m, args, output: second.append(output)))
    model(x)
    for handle in handles:
        handle.remove()
    return [(type(m).__name__, (a - b).abs().max().item()) for (m, a), b in zip(first, second)]


@mistake("05.2", "signed")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "signed")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (own - output).max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_the_largest")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().mean().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_a_number")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "leaves_hooks", points=3)
def prove(model, x, skip):
    seen = []
    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "output_and_list")
def prove(model, x, skip):
    seen = []
    with ExitStack() as stack:
        for child in model.children():
            if not isinstance(child, skip):
                stack.enter_context(
                    child.register_forward_hook(lambda m, a, output: seen.append((type(m).__name__, output)))
                )
        returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_only_children")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.modules():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "too_many")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.modules():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [
        (name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned, strict=True)
    ]


@mistake("05.2", "runs_twice", points=3)
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    model(x)
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "runs_twice", points=3)
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    model(x)
    for handle in handles:
        handle.remove()
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "calls_now")
def prove(model, x, skip):
    def keep(module, args=None, output=None):
        pass

    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(keep(child))
    return model(x)


@mistake("05.2", "wrong_arguments")
def prove(model, x, skip):
    seen = []
    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(lambda module, output: seen.append((type(module).__name__, output)))
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]
