"""What the ninth strangers tried on lesson 10: a wrong answer whose message had not been true."""

import torch

from tests.answers import mistake


# Nothing changed a gradient: where none arrives there is one now.
@mistake("10.2", "fills_none")
def gradient_means(model, loss):
    means, handles = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            handles.append(
                parameter.register_hook(lambda grad, name=name: means.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return means
