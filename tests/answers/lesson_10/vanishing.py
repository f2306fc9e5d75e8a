"""Answers to 10.4, `vanishing`."""

from functools import partial

import torch.nn.functional as F

from hookedu import record
from tests.answers import alternative, mistake, unnamed


@alternative("10.4")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().double().mean()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@alternative("10.4")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def note(name, grad):
        sizes[name] = float(grad.abs().sum() / grad.numel())

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(partial(note, name))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@alternative("10.4")
def vanishing(model, x, target, ratio):
    with record(model, layers=lambda name, module: name, gradients=True) as rec:
        F.cross_entropy(model(x), target).backward()
    names = model.run
    size = {name: rec[name].gradient.abs().mean().item() for name in names}
    return [name for name in names if size[name] < ratio * size[names[-1]]]


@mistake("10.4", "returns_nothing")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return None


@mistake("10.4", "no_names")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return {name: sizes[name] for name in order}


@mistake("10.4", "no_names")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [size for size in sizes.values() if size < ratio * sizes[order[-1]]]


@unnamed("10.4", "finds")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return []


@mistake("10.4", "late_binding")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(lambda m, a, o: catch(name, m, a, o)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "parameter_names")
def vanishing(model, x, target, ratio):
    F.cross_entropy(model(x), target).backward()
    sizes = {name: p.grad.abs().mean().item() for name, p in model.named_parameters()}
    return [name for name in sizes if sizes[name] < 1e9 * ratio]


@mistake("10.4", "retains")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.retain_grad()
        sizes[name] = output

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()
    size = {name: output.grad.abs().mean().item() for name, output in sizes.items()}
    return [name for name in order if size[name] < ratio * size[order[-1]]]


@mistake("10.4", "against_largest")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * max(sizes.values())]


@mistake("10.4", "by_norm")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.norm().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "turned_round")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] >= ratio * sizes[order[-1]]]


@mistake("10.4", "other_order", points=6)
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in sizes if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "other_order", points=6)
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [n for n, _ in model.named_children() if sizes[n] < ratio * sizes[order[-1]]]


@mistake("10.4", "full_hook")
def vanishing(model, x, target, ratio):
    sizes = {}
    for name, child in model.named_children():
        child.register_full_backward_hook(
            lambda m, gi, go, name=name: sizes.update({name: go[0].abs().mean().item()})
        )
    F.cross_entropy(model(x), target).backward()
    return [name for name in sizes if sizes[name] < ratio * sizes[model.run[-1]]]


@mistake("10.4", "leaves_hooks", points=5)
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        handles.clear()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "no_finally", points=6)
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(partial(catch, name)))
    F.cross_entropy(model(x), target).backward()
    for handle in handles:
        handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "swallows", points=6)
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    except Exception:
        return []
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "returns_tuple")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        return (name, output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()})))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "calls_now")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, module, args, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(order.append(name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]


@mistake("10.4", "wrong_arguments")
def vanishing(model, x, target, ratio):
    order, sizes, handles = [], {}, []

    def catch(name, output):
        order.append(name)
        output.register_hook(lambda grad: sizes.update({name: grad.abs().mean().item()}))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()

    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]
