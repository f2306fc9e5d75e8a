"""Answers to lesson 07 of strangers who had not read the checks, in their seventeenth round."""

import torch
from torch import nn

from tests.answers import mistake, unnamed


# Outputs on a stack: a forward without a backward leaves its own there.
@unnamed("07.3", "again")
def guided_relu(model):
    outputs, handles = [], []

    def fwd(module, args, out):
        if out.requires_grad:
            outputs.append(out.detach())

    def bwd(module, grad_input, grad_output):
        mask = (outputs.pop() > 0).to(grad_input[0].dtype)
        return (mask * grad_output[0].clamp(min=0),)

    for m in model.modules():
        if isinstance(m, nn.ReLU):
            handles += [m.register_forward_hook(fwd), m.register_full_backward_hook(bwd)]
    return handles


@mistake("07.3", "not_root")  # it does look at the model itself, which has no parameters
def guided_relu(model):
    def after(module, args, out):
        if torch.is_grad_enabled() and any(p.requires_grad for p in model.parameters()):
            out.register_hook(lambda g: g.clamp(min=0))

    return [m.register_forward_hook(after) for m in model.modules() if isinstance(m, nn.ReLU)]


# "No gradient passes back through any of the inputs": the first may need none while another does.
@mistake("07.5", "asks_others", points=5)
def stop_gradient(layer):
    def pre(module, args):
        if args[0].requires_grad:
            return tuple(a.detach() for a in args)

    return layer.register_forward_pre_hook(pre)


@mistake("07.5", "asks_others", points=5)
def stop_gradient(layer):
    def pre(module, args):
        x, *rest = args
        if not x.requires_grad:
            return None
        return (x.detach(), *[r.detach() for r in rest])

    return layer.register_forward_pre_hook(pre)


@mistake("07.5", "asks_others", points=5)
def stop_gradient(layer):
    def pre(module, args):
        if all(a.requires_grad for a in args):
            return tuple(a.detach() for a in args)

    return layer.register_forward_pre_hook(pre)
