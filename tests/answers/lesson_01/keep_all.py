"""Answers to 01.3, `keep_all`."""

import torch

from tests.answers import alternative, mistake, unnamed


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

    handles = [t.register_hook(store(t)) for t in tensors.values() if t.grad_fn is not None]
    loss.backward()
    for handle in handles:
        handle.remove()


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


@mistake("01.3", "several_passes", points=2)
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            (tensor.grad,) = torch.autograd.grad(loss, tensor, retain_graph=True)


@mistake("01.3", "several_passes", points=2)
def keep_all(tensors, loss):
    loss.backward(retain_graph=True)
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
            tensor.grad = None
    loss.backward()


@mistake("01.3", "stores_twice")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.register_hook(lambda grad, tensor=tensor: setattr(tensor, "grad", grad))
    loss.backward()


@mistake("01.3", "leaves_only")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.is_leaf and tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()


@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    *_, last = [t for t in tensors.values() if t.requires_grad and not t.is_leaf]
    last.retain_grad()
    loss.backward()


@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    for name in ("x", "h", "y"):  # the names of the first case
        if name in tensors:
            tensors[name].retain_grad()
    for tensor in list(tensors.values())[:-1]:
        if tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()


@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    try:
        for tensor in tensors.values():
            tensor.retain_grad()  # ends the loop at the first tensor that requires none
    except RuntimeError:
        pass
    loss.backward()


@unnamed("01.3", "keeps")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    (2 * loss).backward()


@unnamed("01.3", "keeps")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()
    for tensor in tensors.values():
        tensor.grad = torch.zeros_like(tensor)


@unnamed("01.3", "keeps")
def keep_all(tensors, loss):
    needed = [t for t in tensors.values() if t.requires_grad]
    for tensor in needed:
        tensor.retain_grad()
    loss.backward()
    for tensor in needed:
        tensor.grad = None


@mistake("01.3", "argument", points=2)
def keep_all(tensors, loss):
    for name in [name for name, t in tensors.items() if not t.requires_grad]:
        del tensors[name]
    for tensor in tensors.values():
        tensor.retain_grad()
    loss.backward()
    tensors.clear()


@mistake("01.3", "process", points=2)
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()
    torch.set_grad_enabled(False)


@mistake("01.3", "anothers_gradient")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.register_hook(lambda grad: setattr(tensor, "grad", grad))
    loss.backward()
