"""Answers to lesson 09 from a fifth group of readers who did not know the checks.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
from collections import defaultdict
from functools import partial

import torch
from torch import nn
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.utils import make_grid

from tests.answers import alternative, edited, mistake, unnamed

_IS_CONV = "isinstance(module, nn.Conv2d)"
edited("09.1", "leaves_only", (_IS_CONV, f"{_IS_CONV} and not list(module.children())"))
edited(
    "09.1", "through_numpy", ("output.detach().clone()", "torch.from_numpy(output.detach().numpy().copy())")
)


@mistake("09.1", "never_ran")
def conv_groups(model, x):
    convs = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    groups = {tuple(conv.weight.shape): [] for conv in convs}

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    handles = [conv.register_forward_hook(keep) for conv in convs]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


edited("09.2", "not_to_one", ("(high - low) if", "(high - low).clamp(min=1e-12) if"))
edited(
    "09.2",
    "grid",
    ("(maps - low) / (high - low) if", "maps / (high - low) - low / (high - low) if"),
    named=False,
)
edited("09.2", "view", ("maps.min()", "maps.view(len(maps), -1).min()"))


@mistake("09.2", "not_to_one")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]


@unnamed("09.2", "grid")
def one_scale(maps, columns):
    scale = 1 / (maps.max() - maps.min()) if maps.max() > maps.min() else 0
    return make_grid((maps * scale - maps.min() * scale)[:, None], nrow=columns, padding=0)[0]


@alternative("09.2")
def one_scale(maps, columns):
    """Folds the maps, one column of numbers each, into the picture."""
    channels, height, width = maps.shape
    low, high = torch.aminmax(maps)
    scaled = (maps - low) / (high - low if high != low else 1.0)
    rows = -(-channels // columns)
    scaled = nn.functional.pad(scaled.reshape(channels, height * width), (0, 0, 0, rows * columns - channels))
    size = rows * height, columns * width
    return nn.functional.fold(scaled.T[None], size, (height, width), stride=(height, width))[0, 0]


_KEPT = "largest.append(output.detach().amax((0, 2, 3)))"
_DEAD = "torch.stack(largest).amax(0)"
edited(
    "09.4",
    "raised",
    (_KEPT, "largest.append(output.detach().clone())"),
    (_DEAD, "torch.cat(largest).amax((0, 2, 3))"),
    named=False,
)
edited("09.4", "threshold", (".amax((0, 2, 3))", ".pow(2).sum((0, 2, 3))"))
edited("09.4", "threshold", (".detach()", ".detach().half()"))
# The mean of numbers that are not negative is 0 only if all are.
edited("09.4", None, (".amax((0, 2, 3))", ".mean((0, 2, 3))"))
edited("09.4", None, ("for batch in batches", "for batch in (batches[n] for n in range(len(batches)))"))


@mistake("09.4", "unrestored", points=5)
def dead_channels(model, relu, batches):
    seen = []
    handle = relu.register_forward_hook(lambda m, a, out: seen.append((out != 0).flatten(2).any(2).any(0)))
    with torch.no_grad():
        for batch in batches:
            model(batch)
    handle.remove()
    alive = torch.stack(seen).any(0)
    return [channel for channel, lives in enumerate(alive.tolist()) if not lives]


# Making an extractor sets all modules to the mode of the model; those of a case are all in the same one.
edited(
    "09.5",
    None,
    (
        "    for name in names:\n        handles",
        "    was = model.training\n    model.eval()\n    for name in names:\n        handles",
    ),
    ("    return", "    model.train(was)\n    return"),
)
edited("09.5", None, (".abs().max().item()", ".abs().max().detach()"))
edited("09.5", "rounded", ("return {name: (", 'return {name: float(f"{('), (".item()", '.item():.5f}")'))
edited(
    "09.5",
    "differences",
    ("return {name: (", 'return {name: float(f"{('),
    (".item()", '.item():.6f}")'),
    named=False,
)
