"""Answers to 03.1, `double_gradient`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("03.1")
def double_gradient(y):
    def double(grad):
        return grad + grad

    return y.register_hook(double)


@alternative("03.1")
def double_gradient(y):
    def double(grad):
        grad = grad.clone()
        grad *= 2  # a clone of our own: nobody else holds it
        return grad

    handle = y.register_hook(double)
    return handle


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.mul(grad, 2))


@mistake("03.1", "forgot_return")
def double_gradient(y):
    def double(grad):
        grad * 2

    return y.register_hook(double)


@mistake("03.1", "forgot_return")
def double_gradient(y):
    def double(grad):
        grad = grad * 2

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    return y.register_hook(lambda grad: grad.mul_(2))


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad *= 2

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad *= 2
        return grad

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad[:] = 2 * grad

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad.data *= 2

    return y.register_hook(double)


@mistake("03.1", "twice")
def double_gradient(y):
    def double(grad):
        grad *= 2
        return grad * 2

    return y.register_hook(double)


@mistake("03.1", "twice")
def double_gradient(y):
    y.register_hook(lambda grad: 2 * grad)
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "not_registered")
def double_gradient(y):
    def double(grad):
        return 2 * grad

    return double


@mistake("03.1", "wrong_tensor")
def double_gradient(y):
    y = y * 1
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "squares")
def double_gradient(y):
    return y.register_hook(lambda grad: grad**2)


@mistake("03.1", "runs_backward")
def double_gradient(y):
    handle = y.register_hook(lambda grad: 2 * grad)
    y.sum().backward(retain_graph=True)
    return handle


@mistake("03.1", "reads_dot_grad")
def double_gradient(y):
    return y.register_hook(lambda grad: 2 * y.grad)


@mistake("03.1", "reads_dot_grad")
def double_gradient(y):
    y.grad *= 2


@mistake("03.1", "returns_no_tensor")
def double_gradient(y):
    return y.register_hook(lambda grad: (2 * grad,))


@mistake("03.1", "returns_no_tensor")
def double_gradient(y):
    return y.register_hook(lambda grad: 2)


@mistake("03.1", "calls_now")
def double_gradient(y):
    def double(grad):
        pass

    return y.register_hook(double(y))


@mistake("03.1", "no_argument")
def double_gradient(y):
    def double():
        return 2

    return y.register_hook(double)


@mistake("03.1", "no_handle", points=2)
def double_gradient(y):
    y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "still_at_work", points=2)
def double_gradient(y):
    y.register_hook(lambda grad: grad * 4)
    return y.register_hook(lambda grad: grad / 2)


@mistake("03.1", "passes_tensor")
def double_gradient(y):
    def double(grad):
        return grad * 2

    return y.register_hook(double(y))


@mistake("03.1", "two_arguments")
def double_gradient(y):
    def double(y, grad):
        return grad * 2

    return y.register_hook(double)


@mistake("03.1", "two_arguments")
def double_gradient(y):
    def double(grad):
        return grad * 2

    return y.register_hook(double())


@mistake("03.1", "removed_at_once")
def double_gradient(y):
    handle = y.register_hook(lambda grad: 2 * grad)
    handle.remove()
    return handle


@mistake("03.1", "removed_at_once")
def double_gradient(y):
    with y.register_hook(lambda grad: 2 * grad) as handle:
        return handle


@mistake("03.1", "adds")
def double_gradient(y):
    return y.register_hook(lambda grad: grad + 2)


@mistake("03.1", "first_gradient")
def double_gradient(y):
    first = []

    def double(grad):
        first.append(2 * grad)
        return first[0]

    return y.register_hook(double)


@mistake("03.1", "removes_itself")
def double_gradient(y):
    def double(grad):
        handle.remove()
        return 2 * grad

    handle = y.register_hook(double)
    return handle


@mistake("03.1", "still_at_work", points=2)
def double_gradient(y):
    handle = y.register_hook(lambda grad: 2 * grad)
    handle.remove()
    y.register_hook(lambda grad: 2 * grad)
    return handle


@mistake("03.1", "hooks", points=2)
def double_gradient(y):
    y.register_hook(print)
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "in_place")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.mul(grad, 2, out=grad))


@unnamed("03.1", "doubles")
def double_gradient(y):
    def double(grad):
        double = grad * 2
        return grad

    return y.register_hook(double)


@unnamed("03.1", "doubles")
def double_gradient(y):
    return y.register_hook(lambda grad: 2 * grad.abs())


@unnamed("03.1", "doubles")
def double_gradient(y):
    return y.register_hook(lambda grad: 2 * grad[:1].expand_as(grad))


@mistake("03.1", "argument", points=2)
def double_gradient(y):
    y.data *= 2
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "one_memory")
def double_gradient(y, handles=[]):
    if not handles:
        handles.append(y.register_hook(lambda grad: 2 * grad))
    return handles[0]


@mistake("03.1", "reads_dot_grad")
def double_gradient(y):
    # the hook of a node receives None for an input without a gradient
    return y.grad_fn.register_hook(lambda inputs, outputs: tuple(grad * 2 for grad in inputs))
