"""Answers to 01.3, `keep_all`."""

import torch

from tests.answers import alternative, mistake


@alternative("01.3")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
    loss.backward(retain_graph=True)
    return {name: tensor.grad for name, tensor in tensors.items()}


@alternative("01.3")
def keep_all(tensors, loss):
    needed = [t for t in tensors.values() if t.requires_grad]
    for tensor, grad in zip(needed, torch.autograd.grad(loss, needed), strict=True):
        tensor.grad = grad


@alternative("01.3")
def keep_all(tensors, loss):
    def store(tensor):
        def keep(grad):
            tensor.grad = grad

        return keep

    for tensor in tensors.values():
        if tensor.grad_fn is not None:
            tensor.register_hook(store(tensor))
    loss.backward()


@mistake("01.3", "leaves_only")
def keep_all(tensors, loss):
    loss.backward()


@mistake("01.3", "leaves_only")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.requires_grad_()
    loss.backward()


@mistake("01.3", "retains_too_late")
def keep_all(tensors, loss):
    loss.backward()
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()


@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
            break
    loss.backward()


@mistake("01.3", "backward_in_loop")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
            loss.backward(retain_graph=True)


@mistake("01.3", "backward_in_loop")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
            loss.backward()


@mistake("01.3", "no_backward")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()


@mistake("01.3", "retains_data")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        tensor.retain_grad()
    loss.backward()


@mistake("01.3", "changes_data")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        tensor.requires_grad_().retain_grad()
    loss.backward()


@mistake("01.3", "works_on_copies")
def keep_all(tensors, loss):
    for name in tensors:
        tensors[name] = tensors[name].detach().requires_grad_()
    loss.backward()


@mistake("01.3", "uses_the_return")
def keep_all(tensors, loss):
    kept = [t.retain_grad() for t in tensors.values() if t.requires_grad]
    loss.backward()
    return [t.grad for t in kept]
