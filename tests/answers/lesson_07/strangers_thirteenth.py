"""What the thirteenth strangers tried on lesson 07: inputs computed elsewhere, numbers near inf, and inputs without gradient."""

import torch
import torch.nn.functional as F

from tests.answers import mistake, unnamed


@mistake("07.1", "leaves_traces", points=3)
def grad_shapes(layer, x):
    saved = {tensor: tensor.grad for tensor in (*layer.parameters(), x) if tensor.is_leaf}
    for tensor in saved:
        tensor.grad = None
    seen = []

    def note(module, *grads):
        seen.extend(tuple(None if g is None else tuple(g.shape) for g in pair) for pair in grads)

    with layer.register_full_backward_hook(note):
        layer(x).sum().backward()
    for tensor, grad in saved.items():
        tensor.grad = grad
    return tuple(seen)


@unnamed("07.2", "routes")
def pool_mask(features, size):
    x = features.nan_to_num().requires_grad_()
    (grad,) = torch.autograd.grad(F.max_pool2d(x, size).sum(), x)
    return grad != 0


@unnamed("07.2", "border", points=3)
def pool_mask(features, size):
    x = features.detach().squeeze().requires_grad_()
    (grad,) = torch.autograd.grad(F.max_pool2d(x, size).sum(), x)
    return grad != 0


@unnamed("07.5", "inputs", points=5)
def stop_gradient(layer):
    def cut(module, args):
        return tuple(x.detach() for x in args if x.requires_grad) or None

    return layer.register_forward_pre_hook(cut)
