"""Wrong answers to lesson 03 of people who looked for what its checks let through: the sixth time.

Right for one pass, one call on a tensor, a tensor that is no leaf, and numbers that every dtype holds.
"""

from functools import partial

import torch
from torch.utils.weak import WeakIdKeyDictionary

from tests.answers import alternative, edited, mistake, unnamed

# One tensor for all passes: what an earlier one gave out is overwritten.


@mistake("03.1", "one_buffer")
def double_gradient(y):
    buffer = torch.empty_like(y.detach())
    return y.register_hook(lambda grad: torch.mul(grad, 2, out=buffer))


@mistake("03.1", "one_buffer")
def double_gradient(y, buffers={}):
    def double(grad):
        buffer = buffers.setdefault((grad.shape, grad.dtype), torch.empty_like(grad))
        return torch.mul(grad, 2, out=buffer)

    return y.register_hook(double)


@mistake("03.2", "one_buffer")
def clip_by_norm(y, max_norm):
    buffer = torch.empty_like(y.detach())

    def clip(grad):
        return buffer.copy_(grad * (max_norm / grad.norm()).clamp(max=1))

    return y.register_hook(clip)


@mistake("03.3", "one_buffer")
def build_chain(y, factors, seen):
    buffer = torch.empty_like(y.detach())

    def step(ratio, grad):
        seen.append(grad * ratio)
        return buffer.copy_(seen[-1])

    return [y.register_hook(partial(step, b / a)) for a, b in zip([1, *factors], factors, strict=False)]


@mistake("03.4", "one_buffer")
def tame(branch, buffers={}):
    def halve(grad):
        buffer = buffers.setdefault((grad.shape, grad.dtype), torch.empty_like(grad))
        return torch.div(grad, 2, out=buffer)

    return [branch.register_hook(lambda grad: grad.clamp(min=0)), branch.register_hook(halve)]


@mistake("03.5", "one_buffer")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    buffer = torch.empty_like(y.detach())
    if y.requires_grad:
        y.register_hook(lambda grad: buffer.copy_(-strength * grad))
    return y


# A second call on the same tensor.


@unnamed("03.1", "asked")
def double_gradient(y):
    if not hasattr(double_gradient, "known"):
        double_gradient.known = WeakIdKeyDictionary()
    if y not in double_gradient.known:
        double_gradient.known[y] = y.register_hook(lambda grad: grad * 2)
    return double_gradient.known[y]


@unnamed("03.2", "asked")
def clip_by_norm(y, max_norm):
    if not hasattr(clip_by_norm, "known"):
        clip_by_norm.known = WeakIdKeyDictionary()
    if y not in clip_by_norm.known:
        clip = lambda grad: grad * (max_norm / grad.norm()).clamp(max=1)  # noqa: E731
        clip_by_norm.known[y] = y.register_hook(clip)
    return clip_by_norm.known[y]


@mistake("03.3", "others", points=3)
def build_chain(y, factors, seen):
    if not hasattr(build_chain, "known"):
        build_chain.known = WeakIdKeyDictionary()
    for handle in build_chain.known.get(y, ()):
        handle.remove()

    def step(ratio, grad):
        seen.append(grad * ratio)
        return seen[-1]

    ratios = [b / a for a, b in zip([1, *factors], factors, strict=False)]
    build_chain.known[y] = [y.register_hook(partial(step, ratio)) for ratio in ratios]
    return build_chain.known[y]


@mistake("03.4", "one_memory")
def tame(branch, handles=[]):
    while handles:
        handles.pop().remove()
    handles += [
        branch.register_hook(lambda grad: grad.clamp(min=0)),
        branch.register_hook(lambda grad: grad / 2),
    ]
    return [*handles]


# A leaf, whose .grad holds the sum of all passes, and is not written by autograd.grad.


@unnamed("03.1", "asked")
def double_gradient(y):
    def double(param):
        param.grad = 2 * param.grad

    if y.is_leaf:
        return y.register_post_accumulate_grad_hook(double)
    return y.register_hook(lambda grad: 2 * grad)


@unnamed("03.2", "asked")
def clip_by_norm(y, max_norm):
    def clip(param):
        torch.nn.utils.clip_grad_norm_([param], max_norm)

    if y.is_leaf:
        return y.register_post_accumulate_grad_hook(clip)
    return y.register_hook(lambda grad: grad * (max_norm / grad.norm()).clamp(max=1))


# Numbers that a smaller dtype does not hold, and infinities.

edited("03.1", "doubles", ("grad * 2", "(grad.half() * 2).to(grad.dtype)"), named=False)
edited("03.1", "doubles", ("grad * 2", "(grad.float() * 2).to(grad.dtype)"), named=False)
edited("03.1", "asked", ("grad * 2", "torch.nan_to_num(grad * 2)"), named=False)
edited("03.2", "clips", ("grad.norm()", "grad.half().norm().item()"), named=False)
edited(
    "03.2",
    "clips",
    ("    def clip", "    max_norm = torch.tensor(max_norm).half().item()\n    def clip"),
    named=False,
)
edited("03.3", "looks", ("grad * ratio", "(grad.half() * ratio).to(grad.dtype)"), named=False)
edited("03.3", "again", ("grad * ratio", "torch.nan_to_num(grad * ratio)"), named=False)
edited("03.3", "notes_all", ("seen.append(new)", "new.any() and seen.append(new)"), named=False)
edited("03.4", "branch", ("grad / 2", "(grad.half() / 2).to(grad.dtype)"), named=False)
edited("03.4", "branch", ("grad / 2", "(grad.float() / 2).to(grad.dtype)"), named=False)
edited("03.5", "reversed", ("-strength * grad", "(grad.half() * -strength).to(grad.dtype)"), named=False)
edited("03.5", "again", ("-strength * grad", "torch.nan_to_num(-strength * grad)"), named=False)
edited("03.5", "forward", ("x.view_as(x)", "torch.atleast_1d(x).clone()"), named=False)


@unnamed("03.2", "leaves")
def clip_by_norm(y, max_norm):
    def clip(grad):
        new = grad.float()
        norm = new.norm()
        return (new * min(1.0, max_norm / norm.item() if norm > 0 else 1.0)).to(grad.dtype)

    return y.register_hook(clip)


@alternative("03.5")
def reverse_gradient(x, strength):
    y = torch.clone(x)
    return y if not y.requires_grad else (y.register_hook(lambda grad: grad.clone().mul_(-strength)), y)[1]
