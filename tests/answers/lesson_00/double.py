"""Answers to 00.1, `double`."""

import operator
from functools import partial, reduce

import numpy as np
import torch
from torch import nn

from tests.answers import alternative, mistake, unnamed


@alternative("00.1")
def double(grad):
    return grad + grad


@alternative("00.1")
def double(grad):
    return torch.mul(grad, 2)


@alternative("00.1")
def double(grad):
    copy = grad.clone()
    copy *= 2
    return copy


@mistake("00.1", "no_return")
def double(grad):
    2 * grad


@mistake("00.1", "no_return")
def double(grad):
    print(2 * grad)


@mistake("00.1", "in_place")
def double(grad):
    return grad.mul_(2)


@mistake("00.1", "in_place")
def double(grad):
    grad *= 2


@mistake("00.1", "adds_two")
def double(grad):
    return grad + 2


@mistake("00.1", "squares")
def double(grad):
    return grad**2


@mistake("00.1", "halves")
def double(grad):
    return grad / 2


@mistake("00.1", "changes_nothing")
def double(grad):
    return grad


@mistake("00.1", "not_a_tensor")
def double(grad):
    return (2 * grad).tolist()


@mistake("00.1", "not_a_tensor")
def double(grad):
    return (2 * grad,)


@mistake("00.1", "not_a_tensor")
def double(grad):
    return (2 * grad).sum().item()


@mistake("00.1", "no_return")
def double(grad):
    return print(2 * grad)


@mistake("00.1", "always_two")
def double(grad):
    return torch.tensor([2.0, 2.0])


@mistake("00.1", "always_two")
def double(grad):
    return torch.full_like(grad, 2)


@mistake("00.1", "calls_broken")
def double(grad):
    def broken(grad):
        2 * grad

    return 2 * broken(grad)


@mistake("00.1", "no_argument")
def double():
    return 2 * torch.ones(2)


@mistake("00.1", "calls_broken")
def double(grad):
    return 2 * print(grad)


@mistake("00.1", "other_dtype")
def double(grad):
    return (2 * grad).double()


@mistake("00.1", "other_dtype")
def double(grad):
    return (2 * grad).int()


@mistake("00.1", "not_a_tensor")
def double(grad):
    return 2 * grad.numpy()


@mistake("00.1", "in_place")
def double(grad):
    grad.data = 2 * grad.data
    return grad


@mistake("00.1", "in_place")
def double(grad):
    return torch.add(grad, grad, out=grad)


@unnamed("00.1", "doubles")
def double(grad):
    return 2 * grad.abs()


@unnamed("00.1", "doubles")
def double(grad):
    return (2 * grad).round()


@unnamed("00.1", "doubles")
def double(grad):
    return 2 * grad.flatten()


@unnamed("00.1", "doubles")
def double(grad):
    return 2 * grad.view(grad.shape[::-1]) if grad.is_contiguous() else 2 * grad.mT


@unnamed("00.1", "doubles")
def double(grad):
    return (2 * grad).sum()


@unnamed("00.1", "doubles")
def double(grad):
    return 2 * grad + 1e-3


@unnamed("00.1", "doubles")
def double(grad):
    return 2 * grad.nan_to_num()


@unnamed("00.1", "doubles")
def double(grad):
    return torch.where(grad.isfinite(), 2 * grad, grad.sign())


# Single numbers: there are no rows, and NumPy gives a number in place of an array.
@unnamed("00.1", "raised")
def double(grad):
    return torch.stack([2 * row for row in grad])


@unnamed("00.1", "raised")
def double(grad):
    return torch.from_numpy(2 * grad.numpy())


@unnamed("00.1", "doubles")
def double(grad):
    return torch.atleast_1d(2 * grad)


@mistake("00.1", "not_a_tensor")
def double(grad):
    return [2 * grad]


@mistake("00.1", "not_a_tensor")
def double(grad):
    return {"grad": 2 * grad}


@alternative("00.1")
class Double:
    def __new__(cls, grad):
        return grad.mul(2)


@alternative("00.1")
def double(grad):
    return torch.from_numpy(np.asarray(2 * grad.numpy()))


@alternative("00.1")
def double(grad):
    return torch.from_numpy(np.asarray(np.multiply(grad.numpy(), 2, dtype=np.float32)))


@alternative("00.1")
def double(grad):
    return torch.tensor(2.0) * grad


@alternative("00.1")
def double(grad):
    return torch.full_like(grad, 2) * grad


@alternative("00.1")
def double(grad):
    return grad / 0.5


@alternative("00.1")
def double(grad):
    return sum([grad, grad])


@alternative("00.1")
def double(grad):
    return reduce(operator.add, [grad] * 2)


@alternative("00.1")
def double(grad):
    return torch.stack([grad, grad]).sum(dim=0)


@alternative("00.1")
def double(grad):
    times_two = partial(torch.mul, other=2)
    return times_two(grad)


@alternative("00.1")
def double(grad, factor=2):
    print("got", result := factor * grad)
    return result


@alternative("00.1")
def double(grad):
    def twice(function):
        return lambda value: function(value) + function(value)

    @twice
    def same(value):
        return value

    return same(grad)


@alternative("00.1")
def double(grad):
    twice = nn.Identity()
    twice.register_forward_hook(lambda module, args, output: 2 * output)
    return twice(grad)


@alternative("00.1")
def double(grad):
    (result,) = (v + v for v in [grad])
    return result


@alternative("00.1")
def double(grad):
    x = torch.zeros_like(grad, requires_grad=True)
    (2 * x).backward(grad)
    return x.grad


@alternative("00.1")
def double(grad):
    doubled = torch.empty_like(grad)
    torch.add(grad, grad, out=doubled)
    return doubled


@mistake("00.1", "reuses_a_tensor")
def double(grad, buffers={}):
    out = buffers.setdefault(grad.shape, torch.empty_like(grad))
    return torch.mul(grad, 2, out=out)


@mistake("00.1", "no_return")
def double(grad):
    if grad.sum() > 0:
        return 2 * grad


@unnamed("00.1", "empty")
def double(grad):
    return torch.tensor((2 * grad).tolist(), dtype=grad.dtype)
