"""Further wrong answers to the exercises of lesson 10 that readers wrote without knowing the checks."""

import torch

from tests.answers import mistake, unnamed


@unnamed("10.1", "order", points=5)
def child_means(model, x):
    means, handles = {}, []
    try:
        for name, child in model.named_children():
            handles.append(
                child.register_forward_hook(lambda m, a, o, name=name: means.update({name: o.mean().item()}))
            )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return dict(sorted(means.items()))


@mistake("10.5", "always_scales", points=4)
def clip_before_step(optimizer, max_norm):
    def hook(optimizer, args, kwargs):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        total = torch.stack([grad.norm() for grad in grads]).norm()
        for grad in grads:
            grad.mul_(max_norm / (total + 1e-6))

    return optimizer.register_step_pre_hook(hook)
