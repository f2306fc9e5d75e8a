"""Answers to lesson 09 from a third group of readers who did not know the checks.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
from collections import Counter, defaultdict
from functools import partial

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import alternative, edited, mistake

edited("09.1", "other_dtype", ("output.detach().clone()", "output.detach().clone().float()"))
edited("09.1", "other_dtype", ("output.detach().clone()", "torch.tensor(output.tolist())"))
edited(
    "09.1",
    "returns_kept",
    ("        groups[", "        output = output.detach().clone()\n        groups["),
    (".append(output.detach().clone())", ".append(output)\n        return output"),
)


@alternative("09.1")
def conv_groups(model, x):
    """A global hook, which passes over the modules of others."""
    own, groups = {*model.modules()}, {}

    def keep(module, args, output):
        if module in own and isinstance(module, nn.Conv2d):
            kept = torch.empty_like(output).copy_(output.detach())
            groups.setdefault(tuple(module.weight.shape), []).append(kept)

    with register_module_forward_hook(keep), torch.no_grad():
        model(x)
    return groups


edited("09.2", "not_to_one", ("(high - low) if", "(high - low + 1e-8) if"))
edited("09.2", "not_to_one", ("(high - low) if", "(high - low).clamp(min=1e-3) if"))
edited("09.2", "taken_for_equal", ("high > low", "high - low > 1e-4"))
edited("09.3", "other_tags", ("reader.Images(tag)", 'reader.Images(reader.Tags()["images"][0])'))
edited("09.3", "other_tags", ("reader.Images(tag)", 'reader.Images(reader.Tags()["images"][-1])'))


@mistake("09.4", "none_found")
def dead_channels(model, relu, batches):
    largest = []

    def keep(module, args, output):
        largest.append(output.detach().amax((0, 2, 3)))

    relus = [module for module in model.modules() if isinstance(module, nn.ReLU)]
    handles = [module.register_forward_hook(keep) for module in relus]
    with torch.no_grad():
        for batch in batches:
            model(batch)
    for handle in handles:
        handle.remove()
    return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()


_FIRST = "next(module for module in model.modules() if isinstance(module, nn.ReLU))"
edited("09.4", "none_found", ("with relu.", f"relu = {_FIRST}\n    with relu."))
edited(
    "09.4",
    "none_found",
    ("with relu.", f"relu = {_FIRST.replace('next(', '[').replace('ReLU))', 'ReLU)][-1]')}\n    with relu."),
)


@alternative("09.4")
def dead_channels(model, relu, batches):
    """Counts what is not 0, channel by channel."""
    counts = Counter()

    def tally(module, args, output):
        counts.update(dict(enumerate(output.count_nonzero(dim=(0, 2, 3)).tolist())))

    with relu.register_forward_hook(tally), torch.inference_mode():
        for batch in batches:
            model(batch)
    return sorted(channel for channel, count in counts.items() if not count)


edited("09.5", "no_abs", (".abs().max().item()", ".max().abs().item()"))
edited("09.5", "no_abs", ("(seen[name] - found[name]).abs()", "(found[name] - seen[name])"))
edited("09.5", "signed", ("(seen[name] - found[name]).abs().max()", "(found[name] - seen[name]).min()"))
edited("09.5", "rounded", ("return {name: (", "return {name: round(("), (".item()", ".item(), 5)"))
edited("09.5", "differences", ("(seen[name] - found[name])", "(seen[name] - found[name])[0]"), named=False)
