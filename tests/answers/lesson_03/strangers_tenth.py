"""What the tenth strangers tried on lesson 03: very small and very large gradients, and one buffer for all passes."""

import torch

from tests.answers import mistake, unnamed


@mistake("03.3", "only_notes")
def build_chain(y, factors, seen):
    original = []

    def chained(place, factor):
        def hook(grad):
            if place == 0:
                original[:] = [grad]
            seen.append(factor * original[0])
            return original[0]

        return hook

    return [y.register_hook(chained(*pair)) for pair in enumerate(factors)]


@unnamed("03.4", "branch")
def tame(branch):
    def keep_positive(grad):
        return torch.where(grad > 1e-3, grad, torch.zeros_like(grad))

    return [branch.register_hook(keep_positive), branch.register_hook(lambda grad: grad / 2)]


@unnamed("03.4", "branch")
def tame(branch):
    return [
        branch.register_hook(lambda grad: grad.clamp(0, 1000)),
        branch.register_hook(lambda grad: grad / 2),
    ]


@mistake("03.4", "one_buffer", points=3)
def tame(branch):
    kept = {}

    def keep_positive(grad):
        buffer = kept.setdefault("buffer", torch.empty_like(grad))
        return buffer.copy_(grad.clamp(min=0))

    return [branch.register_hook(keep_positive), branch.register_hook(lambda grad: grad / 2)]


@mistake("03.5", "cut_off")
def reverse_gradient(x, strength):
    if strength == 0:
        return x.detach()
    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(lambda grad: -strength * grad)
    return y
