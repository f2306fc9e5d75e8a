"""Answers to 03.5, `reverse_gradient`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("03.5")
def reverse_gradient(x, strength):
    y = x.clone()
    if y.requires_grad:
        y.register_hook(lambda grad: grad * -strength)
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -strength * grad

    return Reverse.apply(x)


@alternative("03.5")
def reverse_gradient(x, strength):
    # no hook at all: forward x up to rounding, backward -strength
    return (1 + strength) * x.detach() - strength * x


@alternative("03.5")
def reverse_gradient(x, strength):
    scaled = -strength * x
    return scaled + (x - scaled).detach()


@alternative("03.5")
def reverse_gradient(x, strength):
    if not (x.requires_grad and torch.is_grad_enabled()):
        return x  # no graph is built
    y = x.clone()
    y.register_hook(lambda grad: grad * -strength)
    return y


@mistake("03.5", "hooks_x")
def reverse_gradient(x, strength):
    if x.requires_grad:
        x.register_hook(lambda grad: -strength * grad)
    return x


@mistake("03.5", "hooks_x")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    x.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "changes_forward")
def reverse_gradient(x, strength):
    return -strength * x


@mistake("03.5", "changes_forward")
def reverse_gradient(x, strength):
    y = -x
    y.register_hook(lambda grad: strength * grad)
    return y


@mistake("03.5", "cut_off")
def reverse_gradient(x, strength):
    y = x.detach().requires_grad_()
    y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "no_strength")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -grad)
    return y


@mistake("03.5", "no_minus")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: strength * grad)
    return y


@mistake("03.5", "forgot_return")
def reverse_gradient(x, strength):
    y = x.view_as(x)

    def reverse(grad):
        -strength * grad

    y.register_hook(reverse)
    return y


@mistake("03.5", "not_registered")
def reverse_gradient(x, strength):
    y = x.view_as(x)

    def reverse(grad):
        return -strength * grad

    return y


@mistake("03.5", "returns_handle")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    return y.register_hook(lambda grad: -strength * grad)


@mistake("03.5", "no_return")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -strength * grad)


@mistake("03.5", "in_place")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: grad.mul_(-strength))
    return y


@mistake("03.5", "in_place")
def reverse_gradient(x, strength):
    y = x.clone()

    def reverse(grad):
        grad *= -strength
        return grad

    y.register_hook(reverse)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "returns_no_tensor")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: (-strength * grad,))
    return y


@mistake("03.5", "calls_now")
def reverse_gradient(x, strength):
    def reverse(grad):
        -strength * grad

    y = x.view_as(x)
    y.register_hook(reverse(y))
    return y


@mistake("03.5", "no_argument")
def reverse_gradient(x, strength):
    def reverse():
        return -strength

    y = x.view_as(x)
    y.register_hook(reverse)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.clone()
    if x.requires_grad:  # under no_grad() x may require a gradient and its clone does not
        y.register_hook(lambda grad: grad * -strength)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if torch.is_grad_enabled():  # plain data requires no gradient here either
        y.register_hook(lambda grad: grad * -strength)
    return y


@mistake("03.5", "passes_tensor")
def reverse_gradient(x, strength):
    def reverse(grad):
        return -strength * grad

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(reverse(y))
    return y


@mistake("03.5", "two_arguments")
def reverse_gradient(x, strength):
    def reverse(grad, strength):
        return -strength * grad

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(reverse)
    return y


@mistake("03.5", "requires_grad", points=3)
def reverse_gradient(x, strength):
    if torch.is_grad_enabled():
        x.requires_grad_()
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "enables_grad", points=3)
def reverse_gradient(x, strength):
    torch.set_grad_enabled(x.requires_grad)
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y


@unnamed("03.5", "forward")
def reverse_gradient(x, strength):
    y = x.double()
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "removes_itself")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:

        def reverse(grad):
            handle.remove()
            return -strength * grad

        handle = y.register_hook(reverse)
    return y


@mistake("03.5", "first_gradient")
def reverse_gradient(x, strength):
    y, kept = x.view_as(x), []

    def reverse(grad):
        kept.append(-strength * grad)
        return kept[0]

    if y.requires_grad:
        y.register_hook(reverse)
    return y


@mistake("03.5", "abs_strength")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -abs(strength) * grad)
    return y


@mistake("03.5", "zero_strength")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -(strength or 1) * grad)
    return y


@unnamed("03.5", "reversed")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: grad)
    return y


@mistake("03.5", "no_return", points=3)
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
        return y


@mistake("03.5", "hooks_x")
def reverse_gradient(x, strength):
    y = x
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y


@unnamed("03.5", "reversed")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -int(strength) * grad)
    return y
