"""Right answers to the exercises of lesson 03 in less usual styles."""

import functools
import itertools
import math
import operator
from collections import deque

import numpy as np
import torch

from tests.answers import alternative


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(functools.partial(torch.mul, 2))


@alternative("03.1")
def double_gradient(y):
    class Times:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, grad):
            return self.factor * grad

    return y.register_hook(Times(2))


@alternative("03.1")
def double_gradient(y):
    def twice(function):
        return lambda grad: function(grad) + function(grad)

    @twice
    def same(grad):
        return grad

    return y.register_hook(same)


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.as_tensor(np.multiply(grad.numpy(), 2)))


@alternative("03.1")
def double_gradient(y):
    return (handle := y.register_hook(lambda grad: (new := grad.clone()).add_(new))) and handle


@alternative("03.1")
def double_gradient(y):
    def double(grad):
        return torch.stack([grad, grad]).sum(dim=0)

    return y.register_hook(double)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if (norm := math.sqrt(sum(v * v for v in grad.flatten().tolist()))) > max_norm:
            return grad * (max_norm / norm)
        return None

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    class Clip:
        def __call__(self, grad):
            return grad / torch.clamp(torch.linalg.norm(grad) / max_norm, min=1)

    return y.register_hook(Clip())


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(limit, grad):
        norm = float(np.linalg.norm(grad.numpy()))
        return grad.mul(limit / norm) if norm > limit else grad

    return y.register_hook(functools.partial(clip, max_norm))


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        """The clipping of PyTorch itself, on a copy that has this gradient as its .grad."""
        copy = torch.zeros_like(grad, requires_grad=True)
        copy.grad = grad.clone()
        torch.nn.utils.clip_grad_norm_([copy], max_norm)
        return copy.grad

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = torch.norm(grad)
        return torch.where(norm > max_norm, grad * max_norm / norm.clamp(min=1e-12), grad)

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        direction = torch.nn.functional.normalize(grad.flatten(), dim=0)
        return (direction * min(grad.norm(), max_norm)).view_as(grad)

    return y.register_hook(clip)


@alternative("03.3")
def build_chain(y, factors, seen):
    class Step:
        def __init__(self, ratio):
            self.ratio = ratio

        def __call__(self, grad):
            seen.append(self.ratio * grad)
            return seen[-1]

    return [y.register_hook(Step(b / a)) for a, b in itertools.pairwise([1, *factors])]


@alternative("03.3")
def build_chain(y, factors, seen):
    def step(ratio, grad):
        seen.extend([ratio * grad])
        return seen[-1].clone()

    before = [1] + factors[:-1]
    return list(map(y.register_hook, (functools.partial(step, f / b) for f, b in zip(factors, before))))


@alternative("03.3")
def build_chain(y, factors, seen):
    previous = 1

    def register(factor):
        nonlocal previous
        ratio, previous = factor / previous, factor

        def step(grad):
            new = torch.mul(grad, ratio)
            seen.append(new)
            return new

        return y.register_hook(step)

    return [register(factor) for factor in factors]


@alternative("03.3")
def build_chain(y, factors, seen):
    """Each hook undoes the factor before it first."""
    handles = deque()
    for n, factor in enumerate(factors):

        def step(grad, factor=factor, previous=factors[n - 1] if n else 1):
            original = grad / previous
            seen.append(factor * original)
            return factor * original

        handles.append(y.register_hook(step))
    return [*handles]


@alternative("03.3")
def build_chain(y, factors, seen):
    def steps():
        for before, after in zip([1.0, *factors], factors, strict=False):
            yield lambda grad, ratio=operator.truediv(after, before): seen.append(grad * ratio) or seen[-1]

    return [y.register_hook(step) for step in steps()]


@alternative("03.4")
def tame(branch):
    class Hook:
        def __init__(self, change):
            self.change = change

        def __call__(self, grad):
            return self.change(grad)

    return [branch.register_hook(Hook(torch.relu)), branch.register_hook(Hook(lambda grad: grad / 2))]


@alternative("03.4")
def tame(branch):
    halve = functools.partial(torch.mul, 0.5)
    keep_positive = functools.partial(torch.clamp, min=0)
    return [branch.register_hook(hook) for hook in (keep_positive, halve)]


@alternative("03.4")
def tame(branch):
    def keep_positive(grad):
        return torch.from_numpy(np.maximum(grad.numpy(), 0))

    def halve(grad):
        return grad - grad / 2

    first = branch.register_hook(keep_positive)
    second = branch.register_hook(halve)
    return first, second


@alternative("03.4")
def tame(branch):
    def keep_positive(grad):
        return grad.masked_fill(grad < 0, 0)

    def halve(grad):
        new = torch.empty_like(grad)
        return torch.div(grad, 2, out=new)

    return list(map(branch.register_hook, [keep_positive, halve]))


@alternative("03.4")
def tame(branch):
    def keep_positive(grad):
        return (grad + grad.abs()) / 2

    def halve(grad):
        return grad.clone().div_(2)

    handles = {hook.__name__: branch.register_hook(hook) for hook in (keep_positive, halve)}
    return list(handles.values())


@alternative("03.5")
def reverse_gradient(x, strength):
    y = x.view(x.shape)
    try:
        y.register_hook(functools.partial(torch.mul, -strength))
    except RuntimeError:
        pass  # nothing to reverse
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    class Reverse:
        def __call__(self, grad):
            return grad.neg() * strength

    y = x[...]
    if y.requires_grad:
        y.register_hook(Reverse())
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    if not (x.requires_grad and torch.is_grad_enabled()):
        return x.clone()
    y = x + 0
    y.register_hook(lambda grad: -(grad * strength))
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    """The hook of the node instead of that of the tensor."""
    y = x.clone()
    if y.grad_fn is not None:
        y.grad_fn.register_prehook(lambda grads: tuple(-strength * grad for grad in grads))
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    y = x.reshape(-1).reshape(x.shape)
    if y.requires_grad:

        def reverse(grad):
            new = grad.clone()
            new *= -strength
            return new

        y.register_hook(reverse)
    return y
