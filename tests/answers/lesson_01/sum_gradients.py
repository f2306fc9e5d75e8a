"""Answers to 01.2, `sum_gradients`."""

import torch

from tests.answers import alternative, mistake


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
