"""Answers to lesson 01 that got a message which was not true of them, found by a reader of all messages."""

import torch

from tests.answers import mistake


# What autograd.grad gives is a tuple.
@mistake("01.2", "assigns_number")
def sum_gradients(w, losses):
    w.grad = torch.autograd.grad(sum(losses), w)


# Before backward .grad is None.
@mistake("01.3", "uses_the_return")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.grad.retain_grad()
    loss.backward()


@mistake("01.4", "frees_graph")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.autograd.grad(y, x, wanted / slope)
    return wanted / slope


@mistake("01.4", "returns_nothing")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    vector = print(wanted / slope)
    return vector
