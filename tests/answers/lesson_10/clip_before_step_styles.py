"""More answers to 10.5, `clip_before_step`, in other styles, and what strangers got wrong."""

import math
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.answers import alternative, edited, mistake, unnamed


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    """The list of groups is taken once: it is the one to which groups are added."""
    groups = optimizer.param_groups
    return optimizer.register_step_pre_hook(
        lambda *_: [
            clip_grad_norm_(chain.from_iterable(group["params"] for group in groups), max_norm)
        ].clear()
    )


@mistake("10.5", "collected_once", points=4)
def clip_before_step(optimizer, max_norm):
    """The parameters are collected once, in a list."""
    params = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
    return optimizer.register_step_pre_hook(lambda *_: [clip_grad_norm_(params, max_norm)].clear())


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    class Clip:
        def __call__(self, optimizer, args, kwargs):
            grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
            factor = max_norm / max(
                math.hypot(*(value for g in grads for value in g.flatten().tolist())), max_norm
            )
            torch._foreach_mul_(grads, factor)

    return optimizer.register_step_pre_hook(Clip())


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(limit, optimizer, *_):
        with torch.no_grad():
            used = {p for group in optimizer.param_groups for p in group["params"] if p.grad is not None}
            total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in used]))
            for p in used:
                p.grad.copy_(torch.where(total > limit, p.grad * limit / total, p.grad))

    return optimizer.register_step_pre_hook(partial(clip, max_norm))


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    """A global hook, which leaves other optimizers alone."""

    def clip(stepping, args, kwargs):
        if stepping is optimizer:
            for_all = sum((group["params"] for group in stepping.param_groups), [])
            clip_grad_norm_(for_all, max_norm)

    return register_optimizer_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    """A generator function, called anew for each loop."""

    def used():
        for group in optimizer.param_groups:
            yield from (p for p in group["params"] if p.grad is not None)

    def clip(*args, **kwargs):
        total = torch.zeros(())
        for p in used():
            total += p.grad.square().sum()
        if (norm := total.sqrt()) > max_norm:
            for p in used():
                p.grad.div_(norm).mul_(max_norm)

    handle = optimizer.register_step_pre_hook(clip)
    return handle


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    """Through numpy and back."""

    @torch.no_grad()
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        grads = {n: p.grad.numpy() for n, p in enumerate(params) if p.grad is not None}
        total = np.sqrt(sum(float(np.sum(grad.astype(np.float64) ** 2)) for grad in grads.values()))
        for n in grads if total > max_norm else ():
            params[n].grad = torch.from_numpy(np.asarray(grads[n] * np.float32(max_norm / total)))

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "used_up", points=4)
def clip_before_step(optimizer, max_norm):
    params = (p for group in optimizer.param_groups for p in group["params"])

    def clip(optimizer, args, kwargs):
        clip_grad_norm_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "removes_itself", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)
        handle.remove()

    handle = optimizer.register_step_pre_hook(clip)
    return handle


@mistake("10.5", "every_optimizer")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)

    return register_optimizer_step_pre_hook(clip)


@mistake("10.5", "before_the_call")
def clip_before_step(optimizer, max_norm):
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]

    def clip(optimizer, args, kwargs):
        total = sum(grad.norm() ** 2 for grad in grads) ** 0.5
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "before_the_call")
def clip_before_step(optimizer, max_norm):
    used = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]

    def clip(optimizer, args, kwargs):
        clip_grad_norm_(used, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "grad", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)

    clip(optimizer, (), {})
    return optimizer.register_step_pre_hook(clip)


@unnamed("10.5", "clips")
def clip_before_step(optimizer, max_norm):
    """The spectral norm of a matrix."""

    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = sum(torch.linalg.norm(g, 2 if g.dim() == 2 else None) ** 2 for g in grads) ** 0.5
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@unnamed("10.5", "later", points=4)
def clip_before_step(optimizer, max_norm):
    """The norm of the first step serves for all."""
    norms = []

    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms.append(sum(grad.norm() ** 2 for grad in grads) ** 0.5)
        if norms[-1] > max_norm:
            for grad in grads:
                grad.mul_(max_norm / norms[0])

    return optimizer.register_step_pre_hook(clip)


edited("10.5", None, ("grad.norm() ** 2", "grad.pow(2).sum()"))
edited("10.5", "turned_round", ("total > max_norm", "total < max_norm"))
edited(
    "10.5",
    "other_norm",
    ("grad.norm() ** 2 for grad in grads) ** 0.5", "grad.abs().sum() for grad in grads)"),
)
edited(
    "10.5",
    "other_norm",
    ("sum(grad.norm() ** 2 for grad in grads) ** 0.5", "max(grad.abs().max() for grad in grads)"),
)
edited(
    "10.5",
    "other_norm",
    ("sum(grad.norm() ** 2 for grad in grads) ** 0.5", "max(grad.norm() for grad in grads)"),
)
edited("10.5", "no_root", (" ** 0.5", ""))
edited("10.5", "nothing_changed", ("grad.mul_(max_norm / total)", "grad * (max_norm / total)"))
edited("10.5", "always_scales", ("if total > max_norm:", "if True:"), points=4)
edited(
    "10.5",
    "not_registered",
    ("return optimizer.register_step_pre_hook(clip)", "return clip(optimizer, (), {})"),
)
edited("10.5", "unit_norm", ("max_norm / total", "1 / total"))
edited(
    "10.5",
    "first_group_only",
    ("for group in optimizer.param_groups for", "for group in optimizer.param_groups[:1] for"),
)
edited(
    "10.5",
    "handle",
    (
        "    return optimizer.register",
        "    optimizer.register_step_pre_hook(clip)\n    return optimizer.register",
    ),
    points=4,
    named=False,
)
edited(
    "10.5",
    "values",
    (
        "    def clip",
        "    with __import__('torch').no_grad():\n        for group in optimizer.param_groups:\n            for p in group['params']:\n                p.mul_(2)\n\n    def clip",
    ),
    points=4,
)
edited(
    "10.5",
    "gives_up",
    ("        total =", "        if len(grads) < len(params):\n            return\n        total ="),
)
edited(
    "10.5",
    "fills_none",
    (
        "        grads =",
        "        for p in params:\n            p.grad = torch.zeros_like(p) if p.grad is None else p.grad\n        grads =",
    ),
    points=4,
)


@mistake("10.5", "collected_once", points=4)
def clip_before_step(optimizer, max_norm):
    """A copy of the list of groups."""
    groups = list(optimizer.param_groups)

    def clip(optimizer, args, kwargs):
        clip_grad_norm_([p for group in groups for p in group["params"]], max_norm)

    return optimizer.register_step_pre_hook(clip)
