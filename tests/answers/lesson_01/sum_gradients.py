"""Answers to 01.2, `sum_gradients`."""

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("01.2")
def sum_gradients(w, losses):
    w.grad = None
    sum(losses).backward()


@alternative("01.2")
def sum_gradients(w, losses):
    if w.grad is not None:
        w.grad.zero_()
    for i, loss in enumerate(losses):
        loss.backward(retain_graph=i < len(losses) - 1)
    return w.grad


@alternative("01.2")
def sum_gradients(w, losses):
    (w.grad,) = torch.autograd.grad(torch.stack(losses).sum(), w)


@mistake("01.2", "keeps_old", points=2)
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "zeroes_each")
def sum_gradients(w, losses):
    for loss in losses:
        w.grad = None
        loss.backward(retain_graph=True)


@mistake("01.2", "zeroes_after")
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)
    w.grad.zero_()


@mistake("01.2", "only_first")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
        return w.grad


@mistake("01.2", "averages")
def sum_gradients(w, losses):
    w.grad = None
    (sum(losses) / len(losses)).backward()


@mistake("01.2", "adds_twice")
def sum_gradients(w, losses):
    w.grad = None
    total = torch.zeros_like(w)
    for loss in losses:
        loss.backward(retain_graph=True)
        total += w.grad
    w.grad = total


@mistake("01.2", "adds_twice")
def sum_gradients(w, losses):
    grads = []
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
        grads.append(w.grad)
    w.grad = sum(grads)


@mistake("01.2", "returns_instead")
def sum_gradients(w, losses):
    return torch.autograd.grad(sum(losses), w)


@mistake("01.2", "no_backward")
def sum_gradients(w, losses):
    w.grad = None
    return sum(losses)


@mistake("01.2", "no_backward")
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)
    w.grad = None


@mistake("01.2", "frees_graph")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward()


@mistake("01.2", "zeroes_none")
def sum_gradients(w, losses):
    w.grad.zero_()
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "assigns_number")
def sum_gradients(w, losses):
    w.grad = 0
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "argument", points=2)
def sum_gradients(w, losses):
    w.grad = None
    total = losses[0]
    for loss in losses[1:]:
        total += loss  # in place: changes the caller's first loss
    total.backward()


@mistake("01.2", "argument", points=2)
def sum_gradients(w, losses):
    w.grad = None
    while losses:
        losses.pop().backward(retain_graph=True)


@unnamed("01.2", "starts_clean")
def sum_gradients(w, losses, total=[]):
    if total:
        return
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
    total.append(w.grad)


@mistake("01.2", "hooks", points=2)
def sum_gradients(w, losses):
    w.grad = None
    w.register_hook(lambda grad: grad)
    sum(losses).backward()


@mistake("01.2", "zeroes_each")
def sum_gradients(w, losses):
    for loss in losses:
        (w.grad,) = torch.autograd.grad(loss, w, retain_graph=True)


@mistake("01.2", "averages")
def sum_gradients(w, losses):
    w.grad = None
    torch.stack(losses).mean().backward()


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    max(losses).backward()


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    sum(losses).abs().backward()


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses[1:]:
        loss.backward(retain_graph=True)


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    w.grad = None
    sum(losses).backward()
    w.grad = w.grad.abs()


@unnamed("01.2", "starts_clean", points=2)
def sum_gradients(w, losses):
    if w.grad is None:
        sum(losses).backward()


@mistake("01.2", "infinite_stays", points=2)
def sum_gradients(w, losses):
    if w.grad is not None:
        w.grad *= 0
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "subtracts_itself", points=2)
def sum_gradients(w, losses):
    old = w.grad
    sum(losses).backward()
    if old is not None:
        w.grad = w.grad - old


@mistake("01.2", "infinite_stays", points=2)
def sum_gradients(w, losses):
    old = 0 if w.grad is None else w.grad.clone()
    torch.autograd.backward(losses)
    w.grad -= old


@mistake("01.2", "zeroes_each")
def sum_gradients(w, losses):
    w.grad = None
    losses[-1].backward()


_BACKWARD = "loss.backward(retain_graph=True)"
edited("01.2", "each_once", ("in losses:", "in set(losses):"))
edited("01.2", "requires_grad", (_BACKWARD, f"{_BACKWARD}\n    w.requires_grad_(False)"), points=2)
edited("01.2", "argument", (_BACKWARD, f"{_BACKWARD}\n    torch.optim.SGD([w]).step()"), points=2)


@mistake("01.2", "skips_zero")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        if loss:
            loss.backward(retain_graph=True)


@mistake("01.2", "adds_in_place", points=0)
def sum_gradients(w, losses):
    grads = [torch.autograd.grad(loss, w, retain_graph=True)[0] for loss in losses]
    w.grad = grads[0]
    for grad in grads[1:]:
        w.grad += grad
