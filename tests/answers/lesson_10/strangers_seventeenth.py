"""What the seventeenth strangers tried on lesson 10: gradients that are all 0."""

from tests.answers import edited

_NORM = "total = sum(grad.norm() ** 2 for grad in grads) ** 0.5"
_IF = "if total > max_norm:\n            for grad in grads:\n                grad.mul_(max_norm / total)"

edited(
    "10.5",
    "divides_by_zero",
    (_NORM, "total = sum(grad.norm().item() ** 2 for grad in grads) ** 0.5"),
    (_IF, "factor = min(1.0, max_norm / total)\n        for grad in grads:\n            grad.mul_(factor)"),
)
# With tensors there is no error: 0 / 0 is nan.
edited(
    "10.5",
    "still",
    (_IF, "for grad in grads:\n            grad.div_(total).mul_(min(total, max_norm))"),
    named=False,
)
