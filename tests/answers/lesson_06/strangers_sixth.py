"""What the sixth strangers tried on lesson 06: wrong answers that had been accepted or misjudged."""

import numpy  # noqa: F401  that of an answer below, which is text
import torch

from tests.answers import edited, mistake, unnamed


@mistake("06.1", "hooks", points=6)
def refuse_nan(layer, name):
    def guard(module, args):
        for value in args:
            count = int(torch.isnan(value).sum())
            if count:
                raise ValueError(f"{name}: {count} nan")

    for module in layer.modules():
        handle = module.register_forward_pre_hook(guard)
    return handle


# A text of real tensors leaves this one right.
edited("06.1", None, ("if count:", "if value.is_floating_point() and count:"))


@unnamed("06.2", "receives")
def normalise(layer, mean, std):  # takes dim 1 for the channels
    def fit(value, x):
        return value.view(1, -1, *[1] * (x.dim() - 2)) if value.dim() == 1 and x.dim() > 2 else value

    def scale(module, args):
        return ((args[0] - fit(mean, args[0])) / fit(std, args[0]), *args[1:])

    return layer.register_forward_pre_hook(scale)


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    mean_of_channels, std_of_channels = mean.reshape(-1, 1, 1), std.reshape(-1, 1, 1)

    def scale(module, args):
        x, *rest = args
        if x.dim() >= 3:
            return ((x - mean_of_channels) / std_of_channels, *rest)
        return ((x - mean) / std, *rest)

    return layer.register_forward_pre_hook(scale)


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    guarded = torch.where(std.abs() < 1e-3, torch.ones_like(std), std)
    return layer.register_forward_pre_hook(lambda m, args: ((args[0] - mean) / guarded, *args[1:]))


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    std.clamp_(min=1e-2)
    return layer.register_forward_pre_hook(lambda m, args: ((args[0] - mean) / std, *args[1:]))


@mistake("06.2", "on_a_part")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    handles = [m.register_forward_pre_hook(scale) for m in layer.modules() if not list(m.children())]
    return handles[0]


_TENSOR = "isinstance(v, torch.Tensor)"
edited("06.3", "keeps_tensors", (_TENSOR, f"{_TENSOR} and v.is_floating_point()"))
edited(
    "06.3",
    "keeps_tensors",
    (_TENSOR, "isinstance(v, (torch.FloatTensor, torch.DoubleTensor, torch.nn.Parameter))"),
)
edited("06.3", "logs", ("else v for", "else v if numpy.size(v) else None for"), named=False)
edited(
    "06.3",
    "logs",
    ("else v for", "else v.item() if isinstance(v, numpy.ndarray) and v.ndim == 0 else v for"),
    named=False,
)

_RAW = "w = module.weight_raw"
edited(
    "06.4",
    "rebuilt",
    (_RAW, f"{_RAW} if module.training else module.weight_raw.detach()"),
    named=False,
    points=5,
)


@unnamed("06.4", "rebuilt", points=5)
def standardise(conv):
    conv.weight_raw = conv.weight
    del conv.weight

    def rebuild(module, args):
        with torch.set_grad_enabled(module.training):
            var, mean = torch.var_mean(module.weight_raw, (1, 2, 3), correction=0, keepdim=True)
            module.weight = (module.weight_raw - mean) / torch.sqrt(var + 1e-5)

    return conv.register_forward_pre_hook(rebuild)
