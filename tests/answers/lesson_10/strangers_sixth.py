"""Answers to lesson 10 from a sixth group of readers who did not know the checks.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import edited, mistake, unnamed

edited("10.1", "means", ("output.mean()", "output.half().float().mean()"), named=False)


@unnamed("10.1", "means")
def child_means(model, x):
    means, ran, handles = {}, [], []

    def note(name, module, args):
        if ran:
            means[ran[-1]] = args[0].mean().item()
        ran.append(name)

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_pre_hook(partial(note, name)))
        means[ran[-1]] = model(x).mean().item()
    finally:
        for handle in handles:
            handle.remove()
    return means


@unnamed("10.1", "means")
def child_means(model, x):
    means, handles = [], []
    try:
        for child in model.children():
            handles.append(
                child.register_forward_hook(lambda m, a, output: means.append(output.mean().item()))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return dict(zip([name for name, _ in model.named_children()], means, strict=True))


edited(
    "10.2",
    "names",
    (
        "for name, param in model.named_parameters()",
        "for name, param in zip(model.state_dict(), model.parameters())",
    ),
    named=False,
)
edited(
    "10.2",
    "names",
    ("        arrived.append", "        if grad.mean() != 0:\n            arrived.append"),
    named=False,
)
edited(
    "10.2",
    "changes_gradient",
    ("grad.mean().item()))", "grad.mean().item()))\n        return grad.nan_to_num()"),
)
edited(
    "10.4",
    "finds",
    ("grad.abs().mean().item()", "round(grad.abs().mean().item(), 6)"),
    named=False,
)
edited("10.4", "finds", ("grad.abs()", "grad.half().abs()"), named=False)
edited(
    "10.4",
    "by_norm",
    (
        "grad.abs().mean().item()",
        "grad[grad != 0].abs().nan_to_num().sum().item() / max(1, int((grad != 0).sum()))",
    ),
)


@mistake("10.4", "other_order", points=6)
def vanishing(model, x, target, ratio):
    arrived, handles = [], []

    def catch(name, module, args, output):
        output.register_hook(lambda grad: arrived.append((name, grad.abs().mean().item())))

    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(partial(catch, name)))
        F.cross_entropy(model(x), target).backward()
    finally:
        for handle in handles:
            handle.remove()
    return [name for name, size in reversed(arrived) if size < ratio * arrived[0][1]]


edited("10.5", "clips", ("if total > max_norm", "if total > max(1.0, max_norm)"), named=False)
edited(
    "10.5",
    "infinite",
    ("        total =", "        for grad in grads:\n            grad.nan_to_num_(0, 0, 0)\n        total ="),
    named=False,
)


@unnamed("10.5", "clips")
def clip_before_step(optimizer, max_norm):
    global limit
    limit = max_norm

    def clip(optimizer, args, kwargs):
        torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], limit)

    return optimizer.register_step_pre_hook(clip)
