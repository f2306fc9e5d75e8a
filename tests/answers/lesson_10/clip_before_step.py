"""Answers to 10.5, `clip_before_step`."""

import torch

from tests.answers import alternative, mistake


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.nn.utils.get_total_norm(grads)
        for grad in grads:
            grad *= (max_norm / (total + 1e-6)).clamp(max=1)

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        used = [p for p in params if p.grad is not None]
        total = sum(p.grad.pow(2).sum().item() for p in used) ** 0.5
        for p in used:
            p.grad = p.grad * min(1.0, max_norm / (total + 1e-9))

    return optimizer.register_step_pre_hook(clip)


@alternative("10.5")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)
        return args, kwargs

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "not_registered")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return clip


@mistake("10.5", "not_registered")
def clip_before_step(optimizer, max_norm):
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if grads:
        torch.nn.utils.clip_grad_norm_(
            [p for group in optimizer.param_groups for p in group["params"]], max_norm
        )


@mistake("10.5", "nothing_changed")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        for grad in grads:
            grad = grad * (max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "too_late")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_post_hook(clip)


@mistake("10.5", "each_by_its_own")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        for p in params:
            torch.nn.utils.clip_grad_norm_([p], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "each_group")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        for group in optimizer.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "first_group_only")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "clamps_elements")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_value_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "sum_of_norms")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = sum(grad.norm() for grad in grads)
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "unit_norm")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.div_(total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "norm_of_the_parameters")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        total = torch.cat([p.detach().flatten() for p in params]).norm()
        for p in params:
            if p.grad is not None:
                p.grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    params = [p for group in optimizer.param_groups for p in group["params"]]

    def clip(param):
        torch.nn.utils.clip_grad_norm_(params, max_norm)

    return [p.register_post_accumulate_grad_hook(clip) for p in params]


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.register_hook(lambda grad: grad * min(1, max_norm / grad.norm().item())) for p in params]


@mistake("10.5", "in_backward")
def clip_before_step(optimizer, max_norm):
    for group in optimizer.param_groups:
        for p in group["params"]:
            handle = p.register_hook(lambda grad: grad * min(1, max_norm / grad.norm().item()))
    return handle


@mistake("10.5", "always_scales", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        for grad in grads:
            grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "none_grad")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        total = sum(grad.norm() ** 2 for grad in grads) ** 0.5
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "none_grad")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        total = sum((p.grad**2).sum() for p in params) ** 0.5
        for p in params:
            p.grad.mul_(min(1, max_norm / total))

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "returns_value")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        return torch.nn.utils.clip_grad_norm_(params, max_norm)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "three_arguments")
def clip_before_step(optimizer, max_norm):
    def clip(optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    return optimizer.register_step_pre_hook(clip)


@mistake("10.5", "no_handle", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.cat([g.flatten() for g in grads]).norm()
        if total > max_norm:
            for grad in grads:
                grad.mul_(max_norm / total)

    optimizer.register_step_pre_hook(clip)
