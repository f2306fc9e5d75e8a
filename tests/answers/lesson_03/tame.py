"""Answers to 03.4, `tame`."""

import torch

from tests.answers import alternative, mistake, unnamed


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


@mistake("03.4", "first_gradient")
def tame(branch):
    kept = []

    def keep_positive(grad):
        kept.append(grad.clamp(min=0))
        return kept[0]

    return [branch.register_hook(keep_positive), branch.register_hook(lambda grad: grad / 2)]


@unnamed("03.4", "again")
def tame(branch):
    masks = []

    def keep_positive(grad):
        masks.append(grad > 0)
        return grad * masks[0]

    return [branch.register_hook(keep_positive), branch.register_hook(lambda grad: grad / 2)]


@mistake("03.4", "removes_itself")
def tame(branch):
    def halve(grad):
        second.remove()
        return grad / 2

    first = branch.register_hook(lambda grad: grad.clamp(min=0))
    second = branch.register_hook(halve)
    return [first, second]


@mistake("03.4", "removed_at_once")
def tame(branch):
    first = branch.register_hook(lambda grad: grad.clamp(min=0))
    second = branch.register_hook(lambda grad: grad / 2)
    first.remove()
    second.remove()
    return [first, second]


@mistake("03.4", "other_order", points=3)
def tame(branch):
    first = branch.register_hook(lambda grad: grad.clamp(min=0))
    second = branch.register_hook(lambda grad: grad / 2)
    return [second, first]


@mistake("03.4", "hooks", points=3)
def tame(branch):
    branch.register_hook(print)
    return [branch.register_hook(torch.relu), branch.register_hook(lambda grad: grad / 2)]


@unnamed("03.4", "branch")
def tame(branch):
    def keep_positive(grad):
        return grad.clamp(min=1)

    return [branch.register_hook(keep_positive), branch.register_hook(lambda grad: grad / 2)]


@unnamed("03.4", "branch")
def tame(branch):
    return [branch.register_hook(lambda grad: grad), branch.register_hook(lambda grad: grad)]


@unnamed("03.4", "branch")
def tame(branch):
    return [branch.register_hook(torch.relu), branch.register_hook(lambda grad: grad // 2)]


@unnamed("03.4", "handle", points=2)
def tame(branch):
    first = branch.register_hook(lambda grad: grad.clamp(min=0))
    return {"first": first, "second": branch.register_hook(lambda grad: grad / 2)}


@unnamed("03.4", "handle", points=2)
def tame(branch):
    """The hook that drops negatives is registered twice, and one of the two stays on."""
    branch.register_hook(lambda grad: grad.clamp(min=0))
    return [
        branch.register_hook(lambda grad: grad.clamp(min=0)),
        branch.register_hook(lambda grad: grad / 2),
    ]
