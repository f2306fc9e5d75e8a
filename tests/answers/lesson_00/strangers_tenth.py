"""What the tenth strangers tried on lesson 00: answers that are wrong for zeros, or for numbers whose double is infinite."""

from tests.answers import mistake


@mistake("00.1", "gives_grad_itself")
def double(grad):
    if not grad.any():
        return grad
    return 2 * grad


@mistake("00.1", "in_place")
def double(grad):
    grad.mul_(2)
    result = grad.clone()
    grad.div_(2)
    return result
