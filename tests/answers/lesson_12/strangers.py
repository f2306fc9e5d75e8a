"""Wrong answers to lesson 12 from readers who did not know the checks."""

from collections import Counter  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401
from torch.autograd.graph import saved_tensors_hooks  # noqa: F401
from torch.utils.checkpoint import checkpoint

from tests.answers import edited, unnamed

edited("12.1", "limits", ("tensor.half()", "(tensor + 1e-4).half()"), points=8)

edited("12.3", "goes_around", ("checkpoint(model,", "checkpoint(model.forward,"), points=4)
edited("12.3", "wipes", ("        y = ", "        x.grad = None\n        y = "), points=4)
edited("12.3", "requires_grad", ("        y = ", "        x.requires_grad_()\n        y = "), points=4)
edited(
    "12.3",
    "not_added",
    (
        "y.sum().backward()",
        "torch.autograd.grad(y.sum(), [p for p in model.parameters() if p.requires_grad])",
    ),
    points=4,
)
edited(
    "12.3",
    "inside",
    ("        child.register", "        leaf.register"),
    (
        "named_children()\n    ]",
        "named_children()\n        for leaf in child.modules()\n        if not list(leaf.children())\n    ]",
    ),
)


# The hooks are on, but backward hooks of what runs in recomputation are not called.
@unnamed("12.3", "counts")
def count_recomputed(model, x):
    counts, handles = {name: 0 for name, _ in model.named_children()}, []
    y = checkpoint(model, x, use_reentrant=False)
    for name, child in model.named_children():

        def note(module, grad_input, grad_output, name=name):
            counts[name] += 1

        handles.append(child.register_full_backward_hook(note))
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts
