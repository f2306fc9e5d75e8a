"""What the tenth strangers tried on lesson 07."""

from functools import partial

import torch

from tests.answers import mistake


@mistake("07.4", "requires_grad", points=4)
def watch_output(layer, seen):
    layer.weight.requires_grad_(True)

    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(partial(list.append, seen))

    return layer.register_forward_hook(catch)


@mistake("07.5", "times_zero")
def stop_gradient(layer):
    def masked(grad):
        zeros = grad * 0
        return torch.nan_to_num(zeros, nan=0.0) if grad.isnan().any() else zeros

    def stop(module, grad_input, grad_output):
        return tuple(None if grad is None else masked(grad) for grad in grad_input)

    return layer.register_full_backward_hook(stop)
