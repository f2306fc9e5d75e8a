"""Answers to lesson 03 of strangers who had not read the checks, in their sixteenth round."""

import torch

from tests.answers import edited, mistake


# The largest singular value of a matrix, where the dtype has one.
@mistake("03.2", "matrix_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        matrix = grad if grad.dim() == 2 and grad.dtype in (torch.float32, torch.float64) else grad.flatten()
        norm = torch.linalg.norm(matrix, 2)
        return grad * (max_norm / norm) if norm > max_norm else None

    return y.register_hook(clip)


# A condition that never holds: the `return` is there and is not reached.
@mistake("03.2", "forgot_return")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > max_norm * 1000:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


# A `*` is missing, as on paper.
@mistake("03.2", "passes_tensor")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        if norm > max_norm:
            return grad(max_norm / norm)

    return y.register_hook(clip)


# The list becomes what `append` returns.
edited("03.3", "reads_dot_grad", ("handles.append(y.", "handles = handles.append(y."))


# Each hook has a ratio of its own, but none adds in the second pass.
edited(
    "03.3",
    "used_up",
    ("handles, previous = [], 1", "handles, previous, limit = [], 1, len(seen) + len(factors)"),
    ("            seen.append(new)", "            if len(seen) < limit:\n                seen.append(new)"),
)


@mistake("03.4", "forgot_return")
def tame(branch):
    def keep_positive(grad):
        pass

    def halve(grad):
        pass

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.5", "forgot_return")
def reverse_gradient(x, strength):
    y = x.clone()
    if y.requires_grad:

        def rev(grad):
            if strength:
                return -strength * grad

        y.register_hook(rev)
    return y
