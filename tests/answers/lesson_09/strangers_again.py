"""Wrong answers to lesson 09 from the second readers who did not know the checks, and right ones that they wondered about.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
import copy
from collections import defaultdict
from functools import partial

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.utils import make_grid

from tests.answers import alternative, edited, mistake

_KERNEL = "(module.out_channels, module.in_channels, *module.kernel_size)"
edited("09.1", "in_channels", ("tuple(module.weight.shape)", _KERNEL))
_BY_NAME = "for _, module in model.named_modules(remove_duplicate=False):"
edited("09.1", "two_names", ("for module in model.modules():", _BY_NAME))
edited(
    "09.1", "not_itself", ("for module in model.modules():", "for _, module in [*model.named_modules()][1:]:")
)
edited(
    "09.1",
    "not_itself",
    ("for module in model.modules():", "for name, module in model.named_modules():"),
    ("isinstance(module", "name and isinstance(module"),
)
edited("09.1", "calls_forward", ("model(x)\n    finally", "model.forward(x)\n    finally"))
edited("09.1", "copied", ("groups, handles", "model = copy.deepcopy(model)\n    groups, handles"))
edited("09.1", "other_dtype", (".clone()", ".clone().half()"))
edited("09.1", "other_dtype", (".clone()", ".clone().double()"))
edited(
    "09.1",
    "eval_mode",
    (
        "    try:\n        for",
        "    was = {m: m.training for m in model.modules()}\n    model.eval()\n    try:\n        for",
    ),
    ("    finally:", "    finally:\n        for m in was:\n            m.training = was[m]"),
)
edited(
    "09.1",
    "freezes",
    (
        "    try:\n        for",
        "    for p in model.parameters():\n        p.requires_grad_(False)\n    try:\n        for",
    ),
)
edited(
    "09.1",
    "freezes",
    (
        "    try:\n        for",
        "    was = [p.requires_grad for p in model.parameters()]\n    model.requires_grad_(False)\n    try:\n        for",
    ),
    ("    finally:", "    finally:\n        [p.requires_grad_(w) for p, w in zip(model.parameters(), was)]"),
)

edited("09.2", "other_dtype", ("columns * width)", "columns * width).double()"))
edited("09.2", "other_dtype", ("columns * width)", "columns * width).half()"))
edited("09.2", "not_to_one", ("(high - low) if", "(high - low + 1e-5) if"))
edited("09.2", "not_to_one", ("(high - low) if", "(high - low + 1e-6) if"))
edited("09.2", "taken_for_equal", ("if high > low", "if not torch.isclose(high, low)"))
edited("09.2", "taken_for_equal", ("if high > low", "if high - low > 0.01"))

_ADDED = 'writer.add_image(tag, picture, step, dataformats="HW")'
_STRETCHED = "make_grid(picture[None, None], padding=0, normalize=True, scale_each=True)"
_OWN_SCALE = "(picture - picture.min()) / (picture.max() - picture.min())"
edited("09.3", "stretched", (_ADDED, f"writer.add_image(tag, {_STRETCHED}, step)"))
edited("09.3", "stretched", ("(tag, picture,", f"(tag, {_OWN_SCALE},"))
edited("09.3", "pixels", ("(tag, picture,", "(tag, (10 * picture).round() / 10,"), named=False)
edited("09.3", None, (_ADDED, "writer.add_image(tag, make_grid(picture[None]), step)"))
edited("09.3", "by_step", ("return [", "return sorted(["), ("(tag)]", "(tag)])"))
edited(
    "09.3",
    "merged",
    ("return [(event.step, event", "found = {event.step: (event.step, event"),
    ("(tag)]", "(tag)}\n    return list(found.values())"),
)
edited(
    "09.3",
    "merged",
    ("return [(", "return list(dict.fromkeys([("),
    ("(tag)]", "(tag)]))"),
)
edited("09.3", "only_some", ('"images": 0', '"images": 12'))


@mistake("09.3", "not_read_back")
def log_maps(folder, tag, pictures):
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    found = [(event.step, event.height, event.width) for event in reader.Images(tag)]
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
            found.append((step, *picture.shape))
    return found


@mistake("09.4", "one_call_only")
def dead_channels(model, relu, batches):
    seen, largest = {}, []
    with relu.register_forward_hook(lambda m, args, output: seen.update(maps=output.amax((0, 2, 3)))):
        for batch in batches:
            model(batch)
            largest.append(seen["maps"])
    return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()


@mistake("09.4", "one_call_only")
def dead_channels(model, relu, batches):
    seen, largest = {}, []

    def keep(module, args, output):
        seen.setdefault("maps", output.detach().amax((0, 2, 3)))

    with relu.register_forward_hook(keep):
        for batch in batches:
            model(batch)
            largest.append(seen.pop("maps"))
    return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()


edited("09.4", "grad", ("    largest =", "    model.zero_grad(set_to_none=True)\n    largest ="), points=5)
edited("09.4", "grad", ("    largest =", "    model.zero_grad(set_to_none=False)\n    largest ="), points=5)
edited("09.4", "requires_grad", ("    largest =", "    model.requires_grad_(False)\n    largest ="), points=5)

_NUMBER = "(seen[name] - found[name]).abs().max().item()"
edited("09.5", "rounded", (_NUMBER, f"int({_NUMBER})"))
edited("09.5", "rounded", (_NUMBER, f"round({_NUMBER}, 4)"))
edited("09.5", "rounded", (_NUMBER, f"round({_NUMBER}, 2)"))
edited("09.5", "rounded", (_NUMBER, f"round({_NUMBER})"))
edited("09.5", "grad", ("    seen, ", "    model.zero_grad()\n    seen, "), points=6)


@mistake("09.5", "traced")
def disagreement(model, x, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach().clone()

    for name in names:
        handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
    try:  # the hooks also run inside the extractor, but not that of a container
        found = create_feature_extractor(model, list(names))(x)
    finally:
        for handle in handles:
            handle.remove()
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@alternative("09.5")
def disagreement(model, x, names):
    print(model(x).shape)
    seen = {}
    for name in names:
        hook = partial(lambda name, module, args, output: seen.update({name: output.detach().clone()}), name)
        with model.get_submodule(name).register_forward_hook(hook):
            model(x)
    found = create_feature_extractor(model, list(names))(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}
