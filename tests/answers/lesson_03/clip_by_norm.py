"""Answers to 03.2, `clip_by_norm`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("03.2")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad * (max_norm / grad.norm()).clamp(max=1))


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = torch.linalg.vector_norm(grad)
        return grad if norm <= max_norm else grad / norm * max_norm

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad * min(1.0, max_norm / (grad.norm() + 1e-6)))


@alternative("03.2")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = (grad**2).sum().sqrt().item()
        return grad * min(1.0, max_norm / (norm + 1e-6))

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: torch.renorm(grad.reshape(1, -1), 2, 0, max_norm).reshape(grad.shape))


@mistake("03.2", "forgot_return")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > max_norm:
            grad = grad * max_norm / grad.norm()

    return y.register_hook(clip)


@mistake("03.2", "not_registered")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > max_norm:
            return grad * max_norm / grad.norm()


@mistake("03.2", "wrong_tensor")
def clip_by_norm(y, max_norm):
    return y.clone().register_hook(lambda grad: grad * (max_norm / grad.norm()).clamp(max=1))


@mistake("03.2", "clips_elements")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad.clamp(-max_norm, max_norm))


@mistake("03.2", "unit_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > max_norm:
            return grad / grad.norm()

    return y.register_hook(clip)


@mistake("03.2", "norm_of_y")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if y.norm() > max_norm:
            return grad * max_norm / y.detach().norm()

    return y.register_hook(clip)


@mistake("03.2", "reversed")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() < max_norm:
            return grad * max_norm / grad.norm()

    return y.register_hook(clip)


@mistake("03.2", "always_scales")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad * (max_norm / grad.norm()))


@mistake("03.2", "zero_becomes_nan", points=3)
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        return grad / norm * min(norm, max_norm)

    return y.register_hook(clip)


@mistake("03.2", "in_place")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        if norm > max_norm:
            grad *= max_norm / norm

    return y.register_hook(clip)


@mistake("03.2", "in_place")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad.mul_((max_norm / grad.norm()).clamp(max=1)))


@mistake("03.2", "returns_no_tensor")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: min(grad.norm().item(), max_norm))


@mistake("03.2", "other_shape")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad.norm().clamp(max=max_norm))


@mistake("03.2", "calls_now")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > 1e9:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip(y))


@mistake("03.2", "no_handle", points=3)
def clip_by_norm(y, max_norm):
    y.register_hook(lambda grad: grad * (max_norm / grad.norm()).clamp(max=1))


@mistake("03.2", "per_row")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm(dim=-1, keepdim=True)
        return torch.where(norm > max_norm, grad * (max_norm / norm), grad)

    return y.register_hook(clip)


@mistake("03.2", "per_row")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm(dim=0, keepdim=True)
        return torch.where(norm > max_norm, grad * (max_norm / norm), grad)

    return y.register_hook(clip)


@mistake("03.2", "other_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.abs().sum()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.2", "other_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.abs().max()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.2", "upside_down")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        if norm > max_norm:
            return grad * (norm / max_norm)

    return y.register_hook(clip)


@mistake("03.2", "still_at_work", points=3)
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.norm() > max_norm:
            return grad * (max_norm / grad.norm())

    y.register_hook(clip)
    return y.register_hook(clip)


@mistake("03.2", "passes_tensor")
def clip_by_norm(y, max_norm):
    def clip(grad):
        return grad * (max_norm / grad.norm()).clamp(max=1)

    return y.register_hook(clip(y))


@mistake("03.2", "no_argument")
def clip_by_norm(y, max_norm):
    def clip():
        if y.grad.norm() > max_norm:
            return y.grad * (max_norm / y.grad.norm())

    return y.register_hook(clip)


@mistake("03.2", "two_arguments")
def clip_by_norm(y, max_norm):
    def clip(grad, max_norm):
        if grad.norm() > max_norm:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


@mistake("03.2", "matrix_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = torch.linalg.norm(grad, 2)
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.2", "matrix_norm")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: grad * (max_norm / torch.linalg.matrix_norm(grad)).clamp(max=1))


@mistake("03.2", "matrix_norm")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = torch.linalg.norm(grad, 2) if grad.dim() < 3 else grad.norm()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.2", "other_condition")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.abs().max() > max_norm:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


@mistake("03.2", "other_condition")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if (grad > max_norm).any():
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


@mistake("03.2", "other_condition")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad[0].norm() > max_norm:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


@unnamed("03.2", "clips")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad[0].norm()
        if norm > max_norm:
            return grad * (max_norm / norm)

    return y.register_hook(clip)


@mistake("03.2", "always_scales")
def clip_by_norm(y, max_norm):
    def clip(grad):
        if grad.abs().sum() > max_norm:
            return grad * (max_norm / grad.norm())

    return y.register_hook(clip)


@mistake("03.2", "remembers")
def clip_by_norm(y, max_norm):
    limit = max_norm

    def clip(grad):
        nonlocal limit
        norm = grad.norm()
        limit = min(limit, norm)
        if norm > limit:
            return grad * (limit / norm)

    return y.register_hook(clip)


@mistake("03.2", "remembers")
def clip_by_norm(y, max_norm):
    norms = []

    def clip(grad):
        norms.append(grad.norm())
        if norms[0] > max_norm:
            return grad * (max_norm / norms[0])

    return y.register_hook(clip)


@mistake("03.2", "removes_itself")
def clip_by_norm(y, max_norm):
    def clip(grad):
        handle.remove()
        return grad * (max_norm / grad.norm()).clamp(max=1)

    handle = y.register_hook(clip)
    return handle


@mistake("03.2", "removed_at_once")
def clip_by_norm(y, max_norm):
    handle = y.register_hook(lambda grad: grad * (max_norm / grad.norm()).clamp(max=1))
    handle.remove()
    return handle


@unnamed("03.2", "clips")
def clip_by_norm(y, max_norm):
    def clip(grad):
        torch.nn.utils.clip_grad_norm_([y], max_norm)
        return grad

    return y.register_hook(clip)


@unnamed("03.2", "leaves")
def clip_by_norm(y, max_norm):
    def clip(grad):
        norm = grad.norm()
        return grad * (max_norm / norm) if norm > max_norm else grad.clamp(-1, 1) * 0

    return y.register_hook(clip)
