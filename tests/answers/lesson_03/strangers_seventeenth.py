"""Wrong answers to lesson 03 that were accepted from a stranger in the seventeenth round."""

from tests.answers import unnamed


@unnamed("03.5", "of_leaf")
def reverse_gradient(x, strength):
    if x.grad_fn is None:
        return x
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: grad * -strength)
    return y
