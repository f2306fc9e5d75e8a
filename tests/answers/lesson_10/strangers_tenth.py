"""What the tenth strangers tried on lesson 10: wrong answers that had passed, or whose messages had not been true."""

import torch

from tests.answers import mistake


# Other people's hooks on the optimizer go, too.
@mistake("10.5", "others", points=4)
def clip_before_step(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(params, max_norm)

    optimizer._optimizer_step_pre_hooks.clear()
    return optimizer.register_step_pre_hook(clip)


# Backward runs twice, but the hooks are on only once.
@mistake("10.2", "twice")
def gradient_means(model, loss):
    loss.backward(retain_graph=True)
    means, handles = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            handles.append(
                parameter.register_hook(lambda grad, name=name: means.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    return means
