"""What the eighth strangers tried on lesson 03: wrong answers that had been accepted, or told something untrue."""

import torch

from tests.answers import alternative, mistake, unnamed


@mistake("03.2", "drops_small")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        if norm < 1e-6:
            return torch.zeros_like(grad)
        return grad * (max_norm / norm).clamp(max=1)

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = (grad * grad).sum().sqrt()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@unnamed("03.2", "clips")
def clip_by_norm(y, max_norm):
    """The norm of the first rows of a matrix."""

    def clip(grad):
        norm = (grad[:2] if grad.dim() > 1 else grad).norm()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.3", "out_of_step", points=3)
def build_chain(y, factors, seen):
    original, n = None, 0

    def step(grad):
        nonlocal original, n
        if n == 0:
            original = grad
        seen.append(factors[n] * original)
        n = (n + 1) % len(factors)
        return seen[-1]

    return [y.register_hook(step) for _ in factors]


@mistake("03.5", "turns_on", points=3)
def reverse_gradient(x, strength):
    y = x.clone()
    if not y.requires_grad:
        y.requires_grad_()
    y.register_hook(lambda grad: -strength * grad)
    return y
