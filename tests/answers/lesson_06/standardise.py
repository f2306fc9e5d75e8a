"""Answers to 06.4, `standardise`."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.answers import alternative, mistake


@alternative("06.4")
def standardise(conv):
    conv.register_parameter("weight_raw", conv.weight)
    del conv.weight

    def rebuild(module, args):
        flat = module.weight_raw.flatten(1)
        flat = flat - flat.mean(1, keepdim=True)
        flat = flat * torch.rsqrt(flat.square().mean(1, keepdim=True) + 1e-5)
        module.weight = flat.view_as(module.weight_raw)

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    conv.weight_raw = nn.Parameter(conv.weight.detach().clone())
    del conv._parameters["weight"]

    def rebuild(module, args):
        w = module.weight_raw
        setattr(module, "weight", F.layer_norm(w, w.shape[1:], eps=1e-5))

    return conv.register_forward_pre_hook(rebuild)


@alternative("06.4")
def standardise(conv):
    def formula(w):
        var, mean = torch.var_mean(w, (1, 2, 3), keepdim=True, correction=0)
        return (w - mean) / torch.sqrt(var + 1e-5)

    conv.weight_raw = conv.weight
    del conv.weight
    conv.weight = formula(conv.weight_raw)
    return conv.register_forward_pre_hook(lambda m, args: setattr(m, "weight", formula(m.weight_raw)))


@mistake("06.4", "changes_nothing")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        w = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "changes_nothing")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return rebuild


@mistake("06.4", "whole_tensor")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((0, 1, 2, 3), keepdim=True)
        var = w.var((0, 1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "wrong_dims")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean(0, keepdim=True)
        var = w.var(0, keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "sample_variance")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=1)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "sample_variance")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_root")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "only_centres")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = w - w.mean((1, 2, 3), keepdim=True)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / var.sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "misplaces_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-3).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "misplaces_eps")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var.sqrt() + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "keeps_mean")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = w / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "other_start")
def standardise(conv):
    conv.weight_raw = nn.Parameter(torch.randn_like(conv.weight))
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "returns_weight")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()
        return module.weight

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "overwrites_weight", points=3)
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight.data = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "overwrites_weight", points=3)
def standardise(conv):
    def rebuild(module, args):
        with torch.no_grad():
            w = module.weight
            mean = w.mean((1, 2, 3), keepdim=True)
            var = w.var((1, 2, 3), keepdim=True, correction=0)
            w.copy_((w - mean) / (var + 1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "raw_not_parameter", points=3)
def standardise(conv):
    raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "new_parameter", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = nn.Parameter((w - mean) / (var + 1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = ((w - mean) / (var + 1e-5).sqrt()).detach()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw.data
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "half_detached", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.detach().mean((1, 2, 3), keepdim=True)
        var = w.detach().var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "once_only", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    w = conv.weight_raw
    mean = w.mean((1, 2, 3), keepdim=True)
    var = w.var((1, 2, 3), keepdim=True, correction=0)
    conv.weight = (w - mean) / (var + 1e-5).sqrt()
    return conv.register_forward_pre_hook(lambda module, args: None)


@mistake("06.4", "assigns_to_parameter")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "leaf_in_place")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        w -= w.mean((1, 2, 3), keepdim=True)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_weight_yet")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args, output):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_hook(rebuild)


@mistake("06.4", "calls_now")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild(conv, ()))


@mistake("06.4", "one_argument")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_handle", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    conv.register_forward_pre_hook(rebuild)
