"""Answers to 06.4, `standardise`."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.answers import alternative, edited, mistake, unnamed


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


@mistake("06.4", "another_parameter", points=5)
def standardise(conv):
    conv.weight_raw = nn.Parameter(conv.weight.detach().clone(), conv.weight.requires_grad)
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


@mistake("06.4", "assigns_to_parameter")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    return conv.register_forward_pre_hook(rebuild)


edited("06.4", "changes_nothing", ("module.weight = (w", "w = (w"), of=standardise)
edited("06.4", "changes_nothing", ("conv.register_forward_pre_hook(rebuild)", "rebuild"), of=standardise)
edited(
    "06.4", "overwrites_weight", ("module.weight = (w", "module.weight.data = (w"), of=standardise, points=3
)


@mistake("06.4", "overwrites_weight", points=3)
def standardise(conv):
    def rebuild(module, args):
        with torch.no_grad():
            w = module.weight
            mean = w.mean((1, 2, 3), keepdim=True)
            var = w.var((1, 2, 3), keepdim=True, correction=0)
            w.copy_((w - mean) / (var + 1e-5).sqrt())

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "sample_variance")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "only_centres")
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        module.weight = w - w.mean((1, 2, 3), keepdim=True)

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


@mistake("06.4", "leaf_in_place")
def standardise(conv):
    def rebuild(module, args):
        w = module.weight
        w -= w.mean((1, 2, 3), keepdim=True)

    return conv.register_forward_pre_hook(rebuild)


edited("06.4", "whole_tensor", ("mean((1, 2, 3)", "mean((0, 1, 2, 3)"), ("var((1, 2, 3)", "var((0, 1, 2, 3)"))
edited("06.4", "wrong_dims", ("mean((1, 2, 3)", "mean(0"), ("var((1, 2, 3)", "var(0"))
edited("06.4", "sample_variance", ("correction=0", "correction=1"))
edited("06.4", "no_root", ("(var + 1e-5).sqrt()", "(var + 1e-5)"))
edited("06.4", "no_eps", ("(var + 1e-5).sqrt()", "var.sqrt()"))
edited("06.4", "misplaces_eps", ("1e-5", "1e-3"))
edited("06.4", "misplaces_eps", ("(var + 1e-5).sqrt()", "(var.sqrt() + 1e-5)"))
edited("06.4", "keeps_mean", ("(w - mean) /", "w /"))
edited(
    "06.4",
    "other_start",
    ("conv.weight_raw = conv.weight", "conv.weight_raw = nn.Parameter(torch.randn_like(conv.weight))"),
)
edited("06.4", "returns_weight", ("(var + 1e-5).sqrt()", "(var + 1e-5).sqrt()\n        return module.weight"))
edited(
    "06.4",
    "raw_not_parameter",
    ("conv.weight_raw = conv.weight", "raw = conv.weight"),
    ("w = module.weight_raw", "w = raw"),
    points=3,
)
edited(
    "06.4",
    "new_parameter",
    ("(w - mean) / (var + 1e-5).sqrt()", "nn.Parameter((w - mean) / (var + 1e-5).sqrt())"),
    points=4,
)
edited(
    "06.4",
    "detached",
    ("(w - mean) / (var + 1e-5).sqrt()", "((w - mean) / (var + 1e-5).sqrt()).detach()"),
    points=4,
)
edited("06.4", "detached", ("w = module.weight_raw", "w = module.weight_raw.data"), points=4)
edited("06.4", "half_detached", ("w.mean(", "w.detach().mean("), ("w.var(", "w.detach().var("), points=4)
edited(
    "06.4",
    "no_weight_yet",
    ("(module, args)", "(module, args, output)"),
    ("register_forward_pre_hook", "register_forward_hook"),
)
edited("06.4", "calls_now", ("hook(rebuild)", "hook(rebuild(conv, ()))"))
edited("06.4", "one_argument", ("(module, args)", "(module)"))
edited("06.4", "no_handle", ("return conv.", "conv."), points=5)
edited("06.4", "half_detached", ("w.var(", "w.detach().var("), points=4)


@mistake("06.4", "one_step_late", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, *_):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()

    rebuild(conv)
    return conv.register_forward_hook(rebuild)


@mistake("06.4", "changes_raw", points=4)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        module.weight = (w - mean) / (var + 1e-5).sqrt()
        w.data = module.weight.detach().clone()

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "once_only", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight
    made = []

    def rebuild(module, args):
        w = module.weight_raw
        mean = w.mean((1, 2, 3), keepdim=True)
        var = w.var((1, 2, 3), keepdim=True, correction=0)
        if not made:
            made.append((w - mean) / (var + 1e-5).sqrt())
        module.weight = made[0]

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "mode", points=5)
def standardise(conv):
    conv.eval()
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        module.weight = F.layer_norm(module.weight_raw, module.weight_raw.shape[1:], eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


RAW = "w = module.weight_raw"
edited(
    "06.4", "once_only", (RAW, "if 'weight' in vars(module):\n            return\n        " + RAW), points=5
)
edited(
    "06.4",
    "sometimes_not",
    (RAW, "if not module.training:\n            return\n        " + RAW),
    points=5,
)
edited(
    "06.4",
    "sometimes_not",
    (RAW, "if not torch.is_grad_enabled():\n            return\n        " + RAW),
    points=5,
)
edited(
    "06.4",
    "another_parameter",
    ("= conv.weight\n", "= nn.Parameter(conv.weight.detach().clone())\n"),
    points=3,
)
edited("06.4", "unfreezes", ("= conv.weight\n", "= conv.weight.requires_grad_()\n"), points=3)
edited("06.4", "freezes", ("del conv", "conv.requires_grad_(False)\n    del conv"), points=3)
edited(
    "06.4",
    "freezes",
    (
        "del conv",
        "conv.bias.requires_grad_(conv.weight.requires_grad) if conv.bias is not None else None\n    del conv",
    ),
    points=4,
)
edited("06.4", "grad", ("del conv", "conv.zero_grad()\n    del conv"), points=5)
edited(
    "06.4",
    "no_weight_yet",
    (
        "return conv",
        "conv.register_forward_hook(lambda module, *_: delattr(module, 'weight'))\n    return conv",
    ),
)


@unnamed("06.4", "rebuilt", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight
    last = None

    def rebuild(module, args):
        nonlocal last
        w = module.weight_raw
        if w._version != last:
            last = w._version
            module.weight = F.layer_norm(w, w.shape[1:], eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "no_weight_yet")
def standardise(conv):
    global _conv
    _conv = conv
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        _conv.weight = F.layer_norm(_conv.weight_raw, _conv.weight_raw.shape[1:], eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "keeps_parameter", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        w = module.weight_raw
        if w.requires_grad or not hasattr(module, "weight"):
            module.weight = F.layer_norm(w, w.shape[1:], eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


@mistake("06.4", "keeps_parameter", points=5)
def standardise(conv):
    raw = conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        module.weight = F.layer_norm(raw, raw.shape[1:], eps=1e-5)

    return conv.register_forward_pre_hook(rebuild)


edited(
    "06.4",
    "saves_weight",
    (
        "del conv.weight",
        "del conv.weight\n    conv.register_buffer('weight', conv.weight_raw.detach().clone())",
    ),
    points=5,
)
edited(
    "06.4",
    "output",
    (RAW, RAW + ".float()"),
    ("(w - mean) / (var + 1e-5).sqrt()", "((w - mean) / (var + 1e-5).sqrt()).to(module.weight_raw.dtype)"),
    named=False,
)
