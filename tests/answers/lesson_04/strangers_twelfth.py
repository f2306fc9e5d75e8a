"""What the twelfth strangers tried on lesson 04: parameters told apart by their values, of which two may be equal."""

import torch

from tests.answers import mistake


@mistake("04.2", "misses_parameters")
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param -= lr * param.grad
        param.grad = None

    different = []
    for param in model.parameters():
        known = any(param.shape == other.shape and torch.equal(param, other) for other in different)
        if param.requires_grad and not known:
            different.append(param)
    return [param.register_post_accumulate_grad_hook(step) for param in different]
