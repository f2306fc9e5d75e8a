"""Answers to 00.1, `double`."""

import torch

from tests.answers import alternative, mistake


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
    return 2 * grad[0].item()


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
