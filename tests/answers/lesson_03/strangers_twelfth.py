"""Answers to lesson 03 of strangers who had not read the checks, in their twelfth round."""

from tests.answers import edited

# A leaf was not made by any operation.
edited(
    "03.1",
    "reads_dot_grad",
    (
        "return y.register_hook(double)",
        "return y.grad_fn.register_hook(lambda given, grads: tuple(None if grad is None else double(grad) for grad in given))",
    ),
)
# Leaves tiny gradients as they are.
edited("03.4", "again", ("return grad / 2", "return grad / 2 if grad.norm() > 1e-6 else None"), named=False)
