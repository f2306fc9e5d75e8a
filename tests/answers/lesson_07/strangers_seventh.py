"""Further wrong answers to the exercises of lesson 07 that readers wrote without knowing the checks."""

import torch

from tests.answers import mistake


@mistake("07.4", "not_registered")
def watch_output(layer, seen):
    mine = list(seen)

    def hook(module, args, output):
        if output.requires_grad:
            output.register_hook(mine.append)

    return layer.register_forward_hook(hook)


@mistake("07.5", "wrong_size")
def stop_gradient(layer):
    def hook(module, grad_input, grad_output):
        return tuple(None if grad is None else torch.zeros_like(grad_output[0]) for grad in grad_input)

    return layer.register_full_backward_hook(hook)


@mistake("07.5", "zeros")
def stop_all(layer):
    def hook(module, grad_input, grad_output):
        return tuple(torch.zeros_like(grad_output[0] if grad is None else grad) for grad in grad_input)

    return layer.register_full_backward_hook(hook)
