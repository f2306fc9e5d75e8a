"""Answers to 04.4, `watch_norms`."""

from functools import partial

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import alternative, mistake


@alternative("04.4")
def watch_norms(model, seen):
    def noter(name):
        return lambda grad: seen.append((name, grad.square().sum().sqrt().item()))

    return [p.register_hook(noter(name)) for name, p in model.named_parameters() if p.requires_grad]


@alternative("04.4")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, torch.linalg.vector_norm(grad).item()))

    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    return handles


@alternative("04.4")
def watch_norms(model, seen):
    """A post-accumulate hook may do it too, if it takes away what was there before."""
    names = {param: name for name, param in model.named_parameters()}
    before = {}

    def note(param):
        this_pass = param.grad - before.get(param, 0)
        before[param] = param.grad.clone()
        seen.append([names[param], float(this_pass.norm())])

    return [p.register_post_accumulate_grad_hook(note) for p in names if p.requires_grad]


@mistake("04.4", "asks_too_early")
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        seen.append((name, param.norm().item()))


@mistake("04.4", "not_registered")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))

    return [partial(note, name) for name, p in model.named_parameters()]


@mistake("04.4", "rebinds_list")
def watch_norms(model, seen):
    def note(name, grad):
        seen = [(name, grad.norm().item())]

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_pairs")
def watch_norms(model, seen):
    def note(grad):
        seen.append(grad.norm().item())

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "model_order", points=3)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        for name, grad in zip(trained, grads, strict=True):
            seen.append((name, grad.norm().item()))

    return register_multi_grad_hook(tuple(trained.values()), note)


@mistake("04.4", "model_order", points=4)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        seen.extend((name, grad.norm().item()) for name, grad in zip(trained, grads, strict=True))

    return [register_multi_grad_hook(tuple(trained.values()), note)]


@mistake("04.4", "norm_of_the_sum", points=4)
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(param, name=name):
                seen.append((name, param.grad.norm().item()))

            handles.append(param.register_post_accumulate_grad_hook(note))
    return handles


@mistake("04.4", "keeps_gradients", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "keeps_tensors", points=4)
def watch_norms(model, seen):
    def note(name, g):
        seen.append((name, g.norm()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "norm_of_the_parameter", points=4)
def watch_norms(model, seen):
    handles = []
    for name, p in model.named_parameters():
        if p.requires_grad:

            def note(grad, name=name, p=p):
                seen.append((name, p.norm().item()))

            handles.append(p.register_hook(note))
    return handles


@mistake("04.4", "upside_down", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.insert(0, (name, grad.norm().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.abs().mean().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.square().sum().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "changes_gradient")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))
        return grad / grad.norm()

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    def note(name, grad):
        norm = grad.norm()
        seen.append((name, norm.item()))
        return norm

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    return [p.register_hook(lambda grad: grad.norm().item()) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "late_binding")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "hooks_frozen")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        handles.append(param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "calls_now")
def watch_norms(model, seen):
    def note(param):
        pass

    return [p.register_hook(note(p)) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "no_argument")
def watch_norms(model, seen):
    def note():
        for name, param in model.named_parameters():
            seen.append((name, param.grad.norm().item()))

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "two_arguments")
def watch_norms(model, seen):
    def note(grad, name):
        seen.append((name, grad.norm().item()))

    return [p.register_hook(note) for _, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_handles", points=4)
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item())))
