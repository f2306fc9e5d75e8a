"""Answers to lesson 03 of strangers who had not read the checks, in their fifteenth round."""

import torch

from tests.answers import alternative, mistake


@alternative("03.1")
def double_gradient(y):
    two = torch.tensor(2.0, dtype=y.dtype)
    return y.register_hook(lambda grad: torch.einsum("...,->...", grad, two))


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def hook(grad):
        norm = grad.double().pow(2).sum().sqrt().item()
        return grad if norm <= max_norm else (grad.double() * (max_norm / norm)).to(grad.dtype)

    return y.register_hook(hook)


@mistake("03.4", "other_order", points=3)
def tame(branch):
    handles = [branch.register_hook(torch.relu), branch.register_hook(lambda grad: grad * 0.5)]
    return handles[::-1]
