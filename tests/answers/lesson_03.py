"""Right and wrong answers to the exercises of lesson 03."""

import torch

from tests.answers import alternative, mistake

# --- 03.1 ---------------------------------------------------------------------------------------------------


@alternative("03.1")
def double_gradient(y):
    def double(grad):
        return grad + grad

    return y.register_hook(double)


@alternative("03.1")
def double_gradient(y):
    def double(grad):
        grad = grad.clone()
        grad *= 2  # a clone of our own: nobody else holds it
        return grad

    handle = y.register_hook(double)
    return handle


@alternative("03.1")
def double_gradient(y):
    return y.register_hook(lambda grad: torch.mul(grad, 2))


@mistake("03.1", "forgot_return")
def double_gradient(y):
    def double(grad):
        grad * 2

    return y.register_hook(double)


@mistake("03.1", "forgot_return")
def double_gradient(y):
    def double(grad):
        grad = grad * 2

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    return y.register_hook(lambda grad: grad.mul_(2))


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad *= 2

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad *= 2
        return grad

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad[:] = 2 * grad

    return y.register_hook(double)


@mistake("03.1", "in_place")
def double_gradient(y):
    def double(grad):
        grad.data *= 2

    return y.register_hook(double)


@mistake("03.1", "twice")
def double_gradient(y):
    def double(grad):
        grad *= 2
        return grad * 2

    return y.register_hook(double)


@mistake("03.1", "twice")
def double_gradient(y):
    y.register_hook(lambda grad: 2 * grad)
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "not_registered")
def double_gradient(y):
    def double(grad):
        return 2 * grad

    return double


@mistake("03.1", "wrong_tensor")
def double_gradient(y):
    y = y * 1
    return y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "squares")
def double_gradient(y):
    return y.register_hook(lambda grad: grad**2)


@mistake("03.1", "runs_backward")
def double_gradient(y):
    handle = y.register_hook(lambda grad: 2 * grad)
    y.sum().backward(retain_graph=True)
    return handle


@mistake("03.1", "reads_dot_grad")
def double_gradient(y):
    return y.register_hook(lambda grad: 2 * y.grad)


@mistake("03.1", "reads_dot_grad")
def double_gradient(y):
    y.grad *= 2


@mistake("03.1", "returns_no_tensor")
def double_gradient(y):
    return y.register_hook(lambda grad: (2 * grad,))


@mistake("03.1", "returns_no_tensor")
def double_gradient(y):
    return y.register_hook(lambda grad: 2)


@mistake("03.1", "calls_now")
def double_gradient(y):
    def double(grad):
        pass

    return y.register_hook(double(y))


@mistake("03.1", "no_argument")
def double_gradient(y):
    def double():
        return 2

    return y.register_hook(double)


@mistake("03.1", "no_handle", points=2)
def double_gradient(y):
    y.register_hook(lambda grad: 2 * grad)


@mistake("03.1", "still_at_work", points=2)
def double_gradient(y):
    y.register_hook(lambda grad: grad * 4)
    return y.register_hook(lambda grad: grad / 2)


@mistake("03.1", "passes_tensor")
def double_gradient(y):
    def double(grad):
        return grad * 2

    return y.register_hook(double(y))


@mistake("03.1", "two_arguments")
def double_gradient(y):
    def double(y, grad):
        return grad * 2

    return y.register_hook(double)


@mistake("03.1", "two_arguments")
def double_gradient(y):
    def double(grad):
        return grad * 2

    return y.register_hook(double())


# --- 03.2 ---------------------------------------------------------------------------------------------------


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
    def clip(grad):
        norm = (grad**2).sum().sqrt().item()
        return grad * min(1.0, max_norm / (norm + 1e-6))

    return y.register_hook(clip)


@alternative("03.2")
def clip_by_norm(y, max_norm):
    return y.register_hook(lambda grad: torch.renorm(grad[None], 2, 0, max_norm)[0])


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


# --- 03.3 ---------------------------------------------------------------------------------------------------


@alternative("03.3")
def build_chain(y, factors, seen):
    def step(ratio):
        def hook(grad):
            seen.append(grad * ratio)
            return seen[-1]

        return hook

    ratios = [factors[0]] + [b / a for a, b in zip(factors, factors[1:])]
    return [y.register_hook(step(ratio)) for ratio in ratios]


@alternative("03.3")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        handles.append(y.register_hook(lambda grad: seen.append(grad)))
        previous = factor
    return handles


@alternative("03.3")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: seen.append(grad * ratio)))
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        previous = factor
    return handles


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [y.register_hook(all_of_it)]


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [y.register_hook(all_of_it)] * len(factors)


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    def nothing(grad):
        pass

    return [y.register_hook(all_of_it), y.register_hook(nothing), y.register_hook(nothing)]


@alternative("03.3")
def build_chain(y, factors, seen):
    original = []

    def start(grad):
        original.append(grad)

    def look(factor, grad):
        seen.append(factor * original[-1])
        return seen[-1]

    from functools import partial

    return (y.register_hook(start), *(y.register_hook(partial(look, factor)) for factor in factors))


@mistake("03.3", "forgets_carry")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:

        def step(grad, factor=factor):
            new = grad * factor
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
    return handles


@mistake("03.3", "late_binding")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        ratio = factor / previous

        def step(grad):
            new = grad * ratio
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "late_binding")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:

        def step(grad):
            seen.append(grad * factor)
            return seen[-1]

        handles.append(y.register_hook(step))
    return handles


@mistake("03.3", "looks_first")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad)
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "in_place")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            grad *= ratio
            seen.append(grad)

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "in_place")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad.mul_(ratio).clone())

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "forgot_return")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        ratio = factor / previous

        def change(grad, ratio=ratio):
            grad * ratio

        handles.append(y.register_hook(change))
        handles.append(y.register_hook(seen.append))
        previous = factor
    return handles


@mistake("03.3", "only_notes")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=factor: seen.append(grad * f)) for factor in factors]


@mistake("03.3", "keeps_nothing")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        previous = factor
    return handles


@mistake("03.3", "asks_too_early")
def build_chain(y, factors, seen):
    for factor in factors:
        seen.append(factor * y)


@mistake("03.3", "some_handles", points=3)
def build_chain(y, factors, seen):
    previous = 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)
            return seen[-1]

        handle = y.register_hook(step)
        previous = factor
    return handle


@mistake("03.3", "some_handles", points=3)
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        y.register_hook(lambda grad: seen.append(grad))
        previous = factor
    return handles[1:]


@mistake("03.3", "no_handle", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    y.register_hook(all_of_it)


@mistake("03.3", "not_registered")
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [all_of_it]


@mistake("03.3", "wrong_tensor")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:
        y = y * 1
        handles.append(y.register_hook(lambda grad, factor=factor: seen.append(grad * factor)))
    return handles


@mistake("03.3", "reads_dot_grad")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=factor: seen.append(y.grad * f)) for factor in factors]


@mistake("03.3", "returns_no_tensor")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=f: (seen.append(grad * f), grad * f)) for f in factors]


@mistake("03.3", "calls_now")
def build_chain(y, factors, seen):
    def step(factor):
        def hook(grad):
            return grad * factor

        # forgot to return the hook

    return [y.register_hook(step(factor)) for factor in factors]


@mistake("03.3", "forgot_return")  # late binding of two values that end up equal, not of one
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad):
            new = grad * (factor / previous)
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "ratio_not_returned")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "difference")
def build_chain(y, factors, seen):
    handles, previous = [], 0
    for factor in factors:

        def step(grad, change=factor - previous):
            seen.append(grad * change)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "difference")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, change=factor - previous):
            seen.append(grad * change)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "passes_tensor")
def build_chain(y, factors, seen):
    def step(grad, ratio):
        return grad * ratio

    return [y.register_hook(step(y, factor)) for factor in factors]


@mistake("03.3", "no_argument")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda: seen.append(factor * y.grad)) for factor in factors]


@mistake("03.3", "two_arguments")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio):
            seen.append(grad * ratio)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


# --- 03.4 ---------------------------------------------------------------------------------------------------


@alternative("03.4")
def tame(branch):
    def keep_positive(grad):
        return torch.where(grad > 0, grad, 0.0)

    def halve(grad):
        return 0.5 * grad

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@alternative("03.4")
def tame(branch):
    def keep_positive(grad):
        grad = grad.clone()
        grad[grad < 0] = 0
        return grad

    def halve(grad):
        grad = grad.clone()
        grad /= 2
        return grad

    return branch.register_hook(keep_positive), branch.register_hook(halve)


@alternative("03.4")
def tame(branch):
    return [
        branch.register_hook(lambda grad: grad / 2),
        branch.register_hook(lambda grad: grad * (grad > 0)),
    ][::-1]


@alternative("03.4")
def tame(branch):
    return [branch.register_hook(lambda grad: grad.relu()), branch.register_hook(lambda grad: grad.div(2))]


@mistake("03.4", "both_in_place")
def tame(branch):
    def keep_positive(grad):
        grad[grad < 0] = 0
        return grad

    def halve(grad):
        grad /= 2
        return grad

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "both_in_place")
def tame(branch):
    def keep_positive(grad):
        new = grad.detach()  # the same memory
        new[new < 0] = 0
        return new

    def halve(grad):
        new = grad
        new /= 2
        return new

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "mask_in_place")
def tame(branch):
    def keep_positive(grad):
        grad[grad < 0] = 0
        return grad.clone()

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "mask_in_place")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp_(min=0)

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "halve_in_place")
def tame(branch):
    def halve(grad):
        grad /= 2
        return grad

    def keep_positive(grad):
        return grad.clamp(min=0)

    return [branch.register_hook(halve), branch.register_hook(keep_positive)]


@mistake("03.4", "saved_by_luck", points=3)
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        grad /= 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "saved_by_luck", points=3)
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        return grad.div_(2)

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "forgot_return")
def tame(branch):
    def keep_positive(grad):
        grad.clamp(min=0)

    def halve(grad):
        grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "halve_missing")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        grad = grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "positive_missing")
def tame(branch):
    def keep_positive(grad):
        grad = grad.clamp(min=0)

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "wrong_half")
def tame(branch):
    def keep_positive(grad):
        return grad * (grad < 0)

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "doubled")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        return grad * 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "not_registered")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        return grad / 2

    return [keep_positive, halve]


@mistake("03.4", "merged", points=2)
def tame(branch):
    return [branch.register_hook(lambda grad: grad.clamp(min=0) / 2)]


@mistake("03.4", "no_handle", points=2)
def tame(branch):
    branch.register_hook(lambda grad: grad.clamp(min=0))
    branch.register_hook(lambda grad: grad / 2)


@mistake("03.4", "reads_dot_grad")
def tame(branch):
    return [branch.register_hook(lambda grad: branch.grad.clamp(min=0))]


@mistake("03.4", "returns_no_tensor")
def tame(branch):
    return [branch.register_hook(lambda grad: [max(v, 0) for v in grad.tolist()])]


@mistake("03.4", "other_shape")
def tame(branch):
    return [branch.register_hook(lambda grad: grad[grad > 0]), branch.register_hook(lambda grad: grad / 2)]


@mistake("03.4", "calls_now")
def tame(branch):
    def keep_positive(grad):
        grad.clamp(min=0)

    return [branch.register_hook(keep_positive(branch))]


@mistake("03.4", "other_job", points=3)
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0) / 2

    def halve(grad):
        pass

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "absolute")
def tame(branch):
    def keep_positive(grad):
        return grad.abs()

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


@mistake("03.4", "passes_tensor")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=0)

    def halve(grad):
        return grad / 2

    return [branch.register_hook(keep_positive(branch)), branch.register_hook(halve(branch))]


@mistake("03.4", "no_argument")
def tame(branch):
    return [branch.register_hook(lambda: branch.clamp(min=0)), branch.register_hook(lambda: branch / 2)]


@mistake("03.4", "two_arguments")
def tame(branch):
    def keep_positive(branch, grad):
        return grad.clamp(min=0)

    def halve(branch, grad):
        return grad / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


# --- 03.5 ---------------------------------------------------------------------------------------------------


@alternative("03.5")
def reverse_gradient(x, strength):
    y = x.clone()
    if y.requires_grad:
        y.register_hook(lambda grad: grad * -strength)
    return y


@alternative("03.5")
def reverse_gradient(x, strength):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -strength * grad

    return Reverse.apply(x)


@alternative("03.5")
def reverse_gradient(x, strength):
    # no hook at all: forward x, backward -strength (exact for these whole numbers)
    return (1 + strength) * x.detach() - strength * x


@mistake("03.5", "hooks_x")
def reverse_gradient(x, strength):
    if x.requires_grad:
        x.register_hook(lambda grad: -strength * grad)
    return x


@mistake("03.5", "hooks_x")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    x.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "changes_forward")
def reverse_gradient(x, strength):
    return -strength * x


@mistake("03.5", "changes_forward")
def reverse_gradient(x, strength):
    y = -x
    y.register_hook(lambda grad: strength * grad)
    return y


@mistake("03.5", "cut_off")
def reverse_gradient(x, strength):
    y = x.detach().requires_grad_()
    y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "no_strength")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -grad)
    return y


@mistake("03.5", "no_minus")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: strength * grad)
    return y


@mistake("03.5", "forgot_return")
def reverse_gradient(x, strength):
    y = x.view_as(x)

    def reverse(grad):
        -strength * grad

    y.register_hook(reverse)
    return y


@mistake("03.5", "not_registered")
def reverse_gradient(x, strength):
    y = x.view_as(x)

    def reverse(grad):
        return -strength * grad

    return y


@mistake("03.5", "returns_handle")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    return y.register_hook(lambda grad: -strength * grad)


@mistake("03.5", "no_return")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -strength * grad)


@mistake("03.5", "in_place")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: grad.mul_(-strength))
    return y


@mistake("03.5", "in_place")
def reverse_gradient(x, strength):
    y = x.clone()

    def reverse(grad):
        grad *= -strength
        return grad

    y.register_hook(reverse)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: -strength * grad)
    return y


@mistake("03.5", "returns_no_tensor")
def reverse_gradient(x, strength):
    y = x.view_as(x)
    y.register_hook(lambda grad: (-strength * grad,))
    return y


@mistake("03.5", "calls_now")
def reverse_gradient(x, strength):
    def reverse(grad):
        -strength * grad

    y = x.view_as(x)
    y.register_hook(reverse(y))
    return y


@mistake("03.5", "no_argument")
def reverse_gradient(x, strength):
    def reverse():
        return -strength

    y = x.view_as(x)
    y.register_hook(reverse)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.clone()
    if x.requires_grad:  # under no_grad() x may require a gradient and its clone does not
        y.register_hook(lambda grad: grad * -strength)
    return y


@mistake("03.5", "needs_gradient", points=3)
def reverse_gradient(x, strength):
    y = x.view_as(x)
    if torch.is_grad_enabled():  # plain data requires no gradient here either
        y.register_hook(lambda grad: grad * -strength)
    return y


@mistake("03.5", "passes_tensor")
def reverse_gradient(x, strength):
    def reverse(grad):
        return -strength * grad

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(reverse(y))
    return y


@mistake("03.5", "two_arguments")
def reverse_gradient(x, strength):
    def reverse(grad, strength):
        return -strength * grad

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(reverse)
    return y
