"""What the eighth strangers tried on lesson 12: wrong answers whose messages had not been true."""

from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from tests.answers import mistake


# A plain forward pass in place of recomputation.
@mistake("12.3", "runs_once_more")
def count_recomputed(model, x):
    counts = {name: 0 for name, _ in model.named_children()}

    def started(name, module, args):
        counts[name] += 1

    checkpoint(model, x, use_reentrant=False).sum().backward()
    handles = [c.register_forward_pre_hook(partial(started, n)) for n, c in model.named_children()]
    model(x)
    for handle in handles:
        handle.remove()
    return counts


# Where x requires no gradients, these hooks do not fire in front of the first layer with parameters.
@mistake("12.3", "counts_first")
def count_recomputed(model, x):
    counts = {name: 0 for name, _ in model.named_children()}

    def started(name, module, grads):
        counts[name] += 1

    handles = [c.register_full_backward_pre_hook(partial(started, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "cut_off", points=4)
def count_recomputed(model, x):
    counts = {name: 0 for name, _ in model.named_children()}

    def started(name, module, args):
        counts[name] += 1

    total = checkpoint(model, x, use_reentrant=False).sum()
    handles = [c.register_forward_pre_hook(partial(started, n)) for n, c in model.named_children()]
    params = [p for p in model.parameters() if p.requires_grad]
    grads = torch.autograd.grad(total, params, allow_unused=True)
    for handle in handles:
        handle.remove()
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    return counts
