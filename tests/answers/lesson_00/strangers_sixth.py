"""What the sixth strangers tried on lesson 00: wrong answers that had been accepted, and a right one."""

from functools import cache

import torch

from tests.answers import alternative, unnamed


@unnamed("00.1", "new")
@cache
def double(grad):
    return 2 * grad


@unnamed("00.1", "doubles")
def double(grad):
    return (2 * grad.half()).to(grad.dtype)


@alternative("00.1")
def double(grad):
    return torch.einsum("...,->...", grad, torch.tensor(2, dtype=grad.dtype))
