"""What the tenth strangers tried on lesson 07."""

from functools import partial

import torch
import torch.nn.functional as F

from tests.answers import mistake, unnamed


@mistake("07.4", "requires_grad", points=4)
def watch_output(layer, seen):
    layer.weight.requires_grad_(True)

    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(partial(list.append, seen))

    return layer.register_forward_hook(catch)


@unnamed("07.2", "ties", points=3)
def pool_mask(features, size):
    leaf = features.detach().clone().requires_grad_()
    F.max_pool2d(leaf, size).sum().backward()
    return (leaf.grad != 0) & (leaf.detach() > -float("inf"))


@mistake("07.4", "makes_need", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        if not args[0].requires_grad and torch.is_grad_enabled():
            args[0].requires_grad_()
        if output.requires_grad:
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.5", "only_computed", points=5)
def stop_gradient(layer):
    def cut(module, args):
        return tuple(x if x.is_leaf else x.detach() for x in args)

    return layer.register_forward_pre_hook(cut)
