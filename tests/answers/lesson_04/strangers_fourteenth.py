"""Answers to lesson 04 of strangers who had not read the checks, in their fourteenth round."""

import torch

from tests.answers import edited, mistake

# A number that is 0.
edited(
    "04.1",
    "divides",
    ("y_grad = 2 * (m + s)", "w_sum = 2 * k * (m + s)\n    y_grad = w_sum / k"),
)

# Double precision.
edited(
    "04.2", "float32", ("param -= lr * param.grad", "param.copy_(param.float() - lr * param.grad.float())")
)
edited("04.4", "float32", ("grad.norm().item()", "grad.float().norm().item()"), points=4)

# Gradients that are not finite.
edited(
    "04.2",
    "freed",
    (
        "param -= lr * param.grad",
        "if not param.grad.isfinite().all():\n                return\n            param -= lr * param.grad",
    ),
    points=4,
    named=False,
)


# What the first call was given also serves the later ones.
@mistake("04.2", "one_memory")
def sgd_in_backward(model, lr):
    steps = sgd_in_backward.__dict__.setdefault("steps", {})
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            if name not in steps:

                @torch.no_grad()
                def step(param, lr=lr):
                    param.sub_(param.grad, alpha=lr)
                    param.grad = None

                steps[name] = step
            handles.append(param.register_post_accumulate_grad_hook(steps[name]))
    return handles
