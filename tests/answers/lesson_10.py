"""Right and wrong answers to the exercises of lesson 10."""

from functools import partial

import torch
import torch.nn.functional as F

from hookedu import record
from tests.answers import alternative, mistake

# --- 10.1 --------------------------------------------------------------------------------------------------


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
    with record(model, layers=lambda name, module: name.count(".") == 0 and name, copy=True) as rec:
        model(x)
    return {name: rec[name].activation.mean().item() for name in ("stem", "act", "head")}


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


# --- 10.2 --------------------------------------------------------------------------------------------------


@alternative("10.2")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@alternative("10.2")
def gradient_means(model, loss):
    arrived, handles = [], []

    def note(name, grad):
        arrived.append([name, float(grad.detach().double().mean())])

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@alternative("10.2")
def gradient_means(model, loss):
    means = {}
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    handles = [
        p.register_hook(lambda grad, name=name: means.update({name: grad.mean().item()}))
        for name, p in trained.items()
    ]
    try:
        loss.backward()
    finally:
        for handle in handles:
            handle.remove()
    return list(means.items())


@mistake("10.2", "late_binding")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad: arrived.append((name, grad.mean().item()))))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "returns_nothing")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()


@mistake("10.2", "no_backward")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
            )

    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "no_backward")
def gradient_means(model, loss):
    loss.backward()
    arrived = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
    return arrived


@mistake("10.2", "no_pairs")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad: arrived.append(grad.mean().item())))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "no_pairs")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return dict(arrived)


@mistake("10.2", "changes_gradient")
def gradient_means(model, loss):
    arrived, handles = [], []

    def note(name, grad):
        arrived.append((name, grad.mean().item()))
        return grad * 0

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "changes_gradient")
def gradient_means(model, loss):
    model.zero_grad()
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "model_order")
def gradient_means(model, loss):
    before = {name: 0 if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    loss.backward()
    return [
        (name, (p.grad - before[name]).mean().item())
        for name, p in model.named_parameters()
        if p.grad is not None
    ]


@mistake("10.2", "upside_down")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.insert(0, (name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "upside_down")
def gradient_means(model, loss):
    loss.backward()
    named = reversed(list(model.named_parameters()))
    return [(name, p.grad.mean().item()) for name, p in named if p.grad is not None]


@mistake("10.2", "mean_of_the_sum", points=4)
def gradient_means(model, loss):
    arrived, handles = [], []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_post_accumulate_grad_hook(
                    lambda p, name=name: arrived.append((name, p.grad.mean().item()))
                )
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "mean_of_the_parameter", points=4)
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name, p=param: arrived.append((name, p.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "not_the_mean", points=4)
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.norm().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "not_the_mean", points=4)
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: arrived.append((name, grad.sum().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "keeps_tensors", points=4)
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean()))))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


@mistake("10.2", "no_gradient_yet")
def gradient_means(model, loss):
    loss.backward()
    return [(name, p.grad.mean().item()) for name, p in model.named_parameters()]


@mistake("10.2", "leaves_hooks", points=5)
def gradient_means(model, loss):
    arrived = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
    loss.backward()
    return arrived


@mistake("10.2", "hooks_frozen")
def gradient_means(model, loss):
    arrived = []
    for name, param in model.named_parameters():
        param.register_hook(lambda grad, name=name: arrived.append((name, grad.mean().item())))
    loss.backward()
    return arrived


@mistake("10.2", "calls_now")
def gradient_means(model, loss):
    arrived, handles = [], []

    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(arrived.append((name, 0))))
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


# --- 10.3 --------------------------------------------------------------------------------------------------


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


# --- 10.4 --------------------------------------------------------------------------------------------------


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


@mistake("10.4", "nothing_found")
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


@mistake("10.4", "nothing_found")
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


@mistake("10.4", "comparison")
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


# --- 10.5 --------------------------------------------------------------------------------------------------


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.nn.utils.get_total_norm(grads)
        for grad in grads:
            grad *= (max_norm / (total + 1e-6)).clamp(max=1)

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        used = [p for p in params if p.grad is not None]
        total = sum(p.grad.pow(2).sum().item() for p in used) ** 0.5
        for p in used:
            p.grad = p.grad * min(1.0, max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)
        return args, kwargs

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "not_registered")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return clip


@mistake("10.5", "not_registered")
def clip_before_step(optimizer, max_norm):
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if grads:
        torch.nn.utils.clip_grad_norm_(
            [p for group in optimizer.param_groups for p in group["params"]], max_norm
        )


@mistake("10.5", "nothing_changed")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        for grad in grads:
            grad = grad * (max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "too_late")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_post_hook(clip)


@mistake("10.5", "each_by_its_own")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        for p in params:
            torch.nn.utils.clip_grad_norm_([p], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "each_group")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        for group in optimizer.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "first_group_only")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "clamps_elements")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_value_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "sum_of_norms")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = sum(grad.norm() for grad in grads)
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "unit_norm")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.div_(total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "norm_of_the_parameters")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        total = torch.cat([p.detach() for p in params]).norm()
        for p in params:
            if p.grad is not None:
                p.grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    params = [p for group in optimizer.param_groups for p in group["params"]]

    def clip(param):
        torch.nn.utils.clip_grad_norm_(params, max_norm)

    return [p.register_post_accumulate_grad_hook(clip) for p in params]


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.register_hook(lambda grad: grad * min(1, max_norm / grad.norm().item())) for p in params]


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    for group in optimizer.param_groups:
        for p in group["params"]:
            handle = p.register_hook(lambda grad: grad * min(1, max_norm / grad.norm().item()))
    return handle


@mistake("10.5", "always_scales", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        for grad in grads:
            grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "none_grad")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        total = sum(grad.norm() ** 2 for grad in grads) ** 0.5
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "none_grad")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        total = sum((p.grad**2).sum() for p in params) ** 0.5
        for p in params:
            p.grad.mul_(min(1, max_norm / total))

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "returns_value")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        return torch.nn.utils.clip_grad_norm_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "three_arguments")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "no_handle", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    optimizer.register_step_pre_hook(clip)
