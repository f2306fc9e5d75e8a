"""Answers to lesson 01 of strangers who had not read the checks, in their fourteenth round."""

from functools import partial

import torch

from tests.answers import mistake


# One tensor under two names.
@mistake("01.3", "adds_per_name")
def keep_all(tensors, loss):
    def add(tensor, grad):
        tensor.grad = grad if tensor.grad is None else tensor.grad + grad

    handles = []
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            handles.append(tensor.register_hook(partial(add, tensor)))
    loss.backward()
    for handle in handles:
        handle.remove()


# A gradient of 0 is one too.
@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    learn = [tensor for tensor in tensors.values() if tensor.requires_grad]
    for tensor in learn:
        tensor.retain_grad()
    torch.autograd.backward(loss)
    for tensor in learn:
        if not tensor.grad.any():
            tensor.grad = None
