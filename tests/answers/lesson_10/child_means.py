"""Answers to 10.1, `child_means`."""

from functools import partial

from hookedu import record
from tests.answers import alternative, mistake


@alternative("10.1")
def child_means(model, x):
    means, handles = {}, []
    names = {child: name for name, child in model.named_children()}

    def note(module, args, output):
        means[names[module]] = output.detach().mean().item()

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(note))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@alternative("10.1")
def child_means(model, x):
    with record(model, layers=lambda name, module: name and "." not in name) as rec:
        model(x)
    ran = dict.fromkeys(event.path for event in rec.events)
    return {name: rec[name].activation.mean().item() for name in ran}


@alternative("10.1")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: float(o.mean())}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "late_binding")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(lambda m, a, o: means.update({name: o.mean().item()})))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "returns_nothing")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()


@mistake("10.1", "all_modules")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_modules():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "class_names")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o: means.update({type(m).__name__: o.mean().item()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "changes_output")
def child_means(model, x):
    means, handles = {}, []

    def note(name, module, args, output):
        means[name] = output.mean().item()
        return output * 0

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(note, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "too_late")
def child_means(model, x):
    means, handles = {}, []

    def note(name, module, args, output):
        means[name] = output.detach()

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(note, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return {name: output.mean().item() for name, output in means.items()}


@mistake("10.1", "keeps_tensors")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "of_the_input")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(
                    lambda m, a, o, name=name: means.update({name: a[0].mean().item()})
                )
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "model_order", points=5)
def child_means(model, x):
    means, handles = {}, []
    means = dict.fromkeys(name for name, _ in model.named_children())
    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "leaves_hooks", points=4)
def child_means(model, x):
    means = {}
    for name, child in model.named_children():
        child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
    model(x)
    return means


@mistake("10.1", "no_finally", points=5)
def child_means(model, x):
    means, handles = {}, []
    for name, child in model.named_children():
        handles.append(
            child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
        )
    model(x)
    for handle in handles:
        handle.remove()
    return means


@mistake("10.1", "swallows", points=5)
def child_means(model, x):
    means = {}
    notes = {
        name: child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
        for name, child in model.named_children()
    }
    try:
        model(x)
    except Exception:
        pass
    finally:
        for handle in notes.values():
            handle.remove()
    return means


@mistake("10.1", "returns_tuple")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(
                    lambda m, a, o, name=name: means.setdefault(name, o.mean().item())
                )
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "calls_now")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(means.update({name: 0})))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means


@mistake("10.1", "wrong_arguments")
def child_means(model, x):
    means, handles = {}, []

    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(
                    lambda output, name=name: means.update({name: output.mean().item()})
                )
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return means
