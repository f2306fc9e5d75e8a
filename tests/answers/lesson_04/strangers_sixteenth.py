"""Answers to lesson 04 of strangers who had not read the checks, in their sixteenth round."""

import torch

from tests.answers import mistake


# "Each parameter that a `backward()` reaches takes one step": asking for a gradient is no backward().
@mistake("04.2", "steps_when_asked", points=4)
def sgd_in_backward(model, lr):
    handles = []

    def let_go(param):
        param.grad = None

    for p in model.parameters():
        if p.requires_grad:

            def step(grad, p=p):
                with torch.no_grad():
                    p -= lr * grad

            handles += [p.register_hook(step), p.register_post_accumulate_grad_hook(let_go)]
    return handles
