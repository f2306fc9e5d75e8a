"""Answers to 10.2, `gradient_means`."""

from functools import partial

from tests.answers import alternative, mistake


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


@mistake("10.2", "too_late")
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


@mistake("10.2", "zeroes")
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


@mistake("10.2", "lists_old")
def gradient_means(model, loss):
    before = {name: 0 if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    loss.backward()
    return [
        (name, (p.grad - before[name]).mean().item())
        for name, p in model.named_parameters()
        if p.requires_grad and p.grad is not None
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


@mistake("10.2", "lists_old")
def gradient_means(model, loss):
    loss.backward()
    named = reversed(list(model.named_parameters()))
    return [(name, p.grad.mean().item()) for name, p in named if p.requires_grad and p.grad is not None]


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


@mistake("10.2", "zeroes")
def gradient_means(model, loss):
    """What a parameter held that the loss does not reach is lost."""
    arrived, handles, old = [], [], {}
    for name, param in model.named_parameters():
        if param.requires_grad:
            old[name], param.grad = param.grad, None
            handles.append(
                param.register_post_accumulate_grad_hook(
                    lambda p, name=name: arrived.append((name, p.grad.mean().item()))
                )
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    for name, param in model.named_parameters():
        if param.grad is not None and old.get(name) is not None:
            param.grad += old[name]
    return arrived


@mistake("10.2", "model_order")
def gradient_means(model, loss):
    found, handles = {}, []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: found.update({name: grad.mean().item()}))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return [(name, found[name]) for name, _ in model.named_parameters() if name in found]
