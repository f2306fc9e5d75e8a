"""Wrong answers to the exercises of lesson 03 that are right in plain cases only: with one call, small shapes, float32."""

import numpy as np
import torch

from tests.answers import alternative, edited, mistake

# Two calls that share something.


@mistake("03.1", "one_memory")
def double_gradient(y, last={}):
    if "handle" in last:
        last["handle"].remove()
    last["handle"] = y.register_hook(lambda grad: 2 * grad)
    return last["handle"]


@mistake("03.2", "one_memory")
def clip_by_norm(y, max_norm):
    clip_by_norm.limit = max_norm

    def clip(grad):
        norm = grad.norm()
        if norm > clip_by_norm.limit:
            return grad * (clip_by_norm.limit / norm)

    return y.register_hook(clip)


@mistake("03.3", "one_memory")
def build_chain(y, factors, seen):
    build_chain.seen = seen
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            build_chain.seen.append(grad * ratio)
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.5", "one_memory")
def reverse_gradient(x, strength, shared={}):
    shared["strength"] = strength
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -shared["strength"] * grad)
    return y


# Hooks of somebody else.

edited("03.1", "others", ("    def double", "    y._backward_hooks.clear()\n    def double"), points=2)
edited("03.2", "others", ("    def clip", "    (y._backward_hooks or {}).clear()\n    def clip"), points=3)
edited("03.3", "others", ("    handles, pre", "    y._backward_hooks.clear()\n    handles, pre"), points=3)

# Other dtypes and layouts.

edited("03.1", "other_dtype", ("return grad * 2", "return grad.float() * 2"))
edited(
    "03.2", "other_dtype", ("return grad * (max_norm / norm)", "return (grad * (max_norm / norm)).float()")
)
edited("03.2", "needs_contiguous", ("grad.norm()", "grad.view(-1).norm()"))
edited("03.2", None, ("grad.norm()", "grad.reshape(-1).norm()"))
edited("03.2", None, ("grad.norm()", "grad.flatten().square().sum().sqrt()"))


@mistake("03.1", "other_dtype")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.tensor((grad * 2).tolist()))


@mistake("03.1", "other_dtype")
def double_gradient(y):
    return y.register_hook(lambda grad: grad * torch.full(grad.shape, 2.0))


@mistake("03.1", "other_dtype")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.as_tensor(np.multiply(grad.numpy(), np.float32(2))))


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.tensor(2.0) * grad)  # a single number keeps the dtype


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.tensor((grad * 2).tolist(), dtype=grad.dtype))


@mistake("03.2", "other_dtype")
def clip_by_norm(y, max_norm):
    def clip(grad):
        factors = torch.ones(grad.shape)
        if grad.norm() > max_norm:
            factors *= max_norm / grad.norm()
        return grad * factors

    return y.register_hook(clip)


@mistake("03.2", "other_dtype")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.float().norm().reshape(1)
        return grad * (max_norm / norm) if norm > max_norm else grad

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.float().norm()
        if norm > max_norm:
            return (grad * (max_norm / norm)).to(grad.dtype)

    return y.register_hook(clip)


# Single numbers.

edited("03.1", "raised", ("return grad * 2", "return torch.stack([2 * row for row in grad])"), named=False)
edited(
    "03.2",
    "raised",
    ("norm = grad.norm()", "norm = sum((row.float() ** 2).sum() for row in grad).sqrt()"),
    named=False,
)


# Small numbers.

edited(
    "03.2",
    "drops_small",
    ("        if norm >", "        if norm < 2e-3:\n            return 0 * grad\n        if norm >"),
)
edited("03.2", "other_condition", ("norm > max_norm", "(grad**2).sum() > max_norm"))


# A list that is not empty, and a hook that is removed.


@mistake("03.3", "replaces")
def build_chain(y, factors, seen):
    seen.clear()
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "same_tensor")
def build_chain(y, factors, seen):
    handles, previous = [], None
    for factor in factors:

        def step(grad, factor=factor, previous=previous):
            new = grad * factor if previous is None else grad.mul_(factor / previous)
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles


edited(
    "03.3",
    "final",
    (
        "    return handles",
        "    handles.append(y.register_hook(lambda grad: grad / factors[-1]))\n    return handles",
    ),
    named=False,
)


@mistake("03.3", "out_of_step", points=3)
def build_chain(y, factors, seen):
    ratios = [after / before for before, after in zip([1, *factors], factors, strict=False)]
    turn = [0]

    def step(grad):  # whichever hook it is
        new = grad * ratios[turn[0] % len(ratios)]
        turn[0] += 1
        seen.append(new)
        return new

    return [y.register_hook(step) for _ in factors]


# Values and signs.

edited("03.5", "forward", ("x.view_as(x)", "1.0001 * x"), named=False)
edited("03.5", "forward", ("x.view_as(x)", "x.float().to(x.dtype)"), named=False)
edited("03.5", "needs_contiguous", ("x.view_as(x)", "x.view(-1).view(x.shape)"))
edited("03.5", "forward", ("x.view_as(x)", "x / x * x"), named=False)
edited("03.5", "enables_grad", ("x.view_as(x)", "torch.enable_grad()(x.view_as)(x)"), points=3)
edited("03.5", "reversed", ("-strength * grad", "-int(strength) * grad"), named=False)

edited("03.3", "other_dtype", ("            return new\n", "            return new.float()\n"))
edited("03.3", "other_dtype", ("ratio=factor / previous", "ratio=torch.tensor([factor / previous])"))
edited("03.3", None, ("ratio=factor / previous", "ratio=torch.tensor(factor / previous)"))
edited("03.4", "other_dtype", ("return grad.clamp(min=0)", "return grad * (grad > 0).float()"))
edited("03.4", None, ("return grad.clamp(min=0)", "return grad * (grad > 0)"))
edited("03.5", "other_dtype", ("-strength * grad)", "torch.full(grad.shape, -float(strength)) * grad)"))
edited("03.5", None, ("-strength * grad)", "torch.full_like(grad, -strength) * grad)"))
edited("03.4", "other_dtype", ("return grad / 2", "return grad.float() / 2"))
edited("03.5", "other_dtype", ("-strength * grad)", "-strength * grad.float())"))
