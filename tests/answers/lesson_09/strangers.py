"""Wrong answers to lesson 09 from readers who did not know the checks.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
import shutil
from collections import defaultdict
from functools import partial

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import edited, mistake

edited_unnamed = partial(edited, named=False)


edited("09.1", "conv_transpose", ("nn.Conv2d)", "(nn.Conv2d, nn.ConvTranspose2d))"))
edited("09.1", "conv_transpose", ("isinstance(module, nn.Conv2d)", '"Conv" in type(module).__name__'))
edited("09.1", "conv_transpose", ("isinstance(module, nn.Conv2d)", 'hasattr(module, "weight")'))
edited_unnamed(
    "09.1", "keys", ("groups[tuple(module.weight.shape)]", "groups[str(tuple(module.weight.shape))]")
)
edited_unnamed("09.1", "keys", ("tuple(module.weight.shape)", "tuple(module.weight.shape[:2])"))
edited_unnamed("09.1", "values", ("return dict(groups)", "return {k: tuple(v) for k, v in groups.items()}"))
edited_unnamed(
    "09.1", "values", ("return dict(groups)", "return {k: torch.stack(v) for k, v in groups.items()}")
)
edited_unnamed("09.1", "values", ("output.detach().clone()", "args[0].detach().clone()"))
edited_unnamed("09.1", "values", (".append(output", ".insert(0, output"))
edited_unnamed("09.1", "values", ("output.detach().clone()", "output.detach().clone().squeeze(0)"))
edited("09.1", "through_numpy", ("output.detach().clone()", "output.detach().clone().numpy()"))
edited("09.1", "runs", ("    try:\n        for", "    model(x)\n    try:\n        for"), points=7)
edited("09.1", "unrestored", ("    finally:", "    except Exception:\n        raise\n    else:"), points=7)
edited(
    "09.1",
    "swallows",
    ("    finally:", "    except BaseException as error:\n        print(error)\n    finally:"),
    points=7,
)
edited("09.1", "swallows", ("    return dict(groups)", "        return dict(groups)"), points=7)
edited(
    "09.1",
    "state",
    ("x):", "x, groups=defaultdict(list)):"),
    ("groups, handles = defaultdict(list), []", "handles = []"),
)
edited(
    "09.1",
    "eval_mode",
    ("    try:\n        for", "    was = model.training\n    model.eval()\n    try:\n        for"),
    ("    finally:", "    finally:\n        model.train(was)"),
)
edited("09.1", "mode", ("    finally:", "    finally:\n        model.eval()"), points=7)


@mistake("09.1", "by_module")
def conv_groups(model, x):
    own, handles = {}, []

    def keep(module, args, output):
        own[module].append(output.detach().clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                own[module] = []
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    groups = defaultdict(list)
    for module, outputs in own.items():
        if outputs:
            groups[tuple(module.weight.shape)] += outputs
    return groups


@mistake("09.1", "not_itself")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    def walk(parent):
        for child in parent.children():
            if isinstance(child, nn.Conv2d):
                handles.append(child.register_forward_hook(keep))
            walk(child)

    try:
        walk(model)
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


edited_unnamed("09.2", "grid", ("-(-channels // columns)", "channels // columns + 1"))
edited_unnamed("09.2", "grid", ("torch.zeros(rows", "torch.ones(rows"))
edited_unnamed(
    "09.2", "grid", ("reshape(rows * height, columns * width)", "reshape(1, rows * height, columns * width)")
)
edited("09.2", "not_to_one", ("(high - low) if", "(high - low + 1) if"))
edited_unnamed("09.2", "grid", ("    rows =", "    scaled = 1 - scaled\n    rows ="))
edited_unnamed("09.2", "grid", ("    rows =", "    scaled = 2 * scaled - 1\n    rows ="))
edited_unnamed(
    "09.2", "grid", ("maps.min(), maps.max()", "maps.amin((1, 2), True), maps.max()"), ("high > low", "True")
)
edited_unnamed("09.2", "constant", ("zeros_like", "ones_like"), points=4)
edited_unnamed("09.2", "constant", ("zeros_like(maps)", "full_like(maps, 0.5)"), points=4)
edited("09.2", "divides_by_zero", ("high > low", "high != 0"), points=4)
edited_unnamed("09.2", "grid", ("    low,", "    maps.clamp_(min=-30)\n    low,"))
edited("09.2", "in_place", ("(maps - low)", "maps.sub_(low)"), points=4)

edited("09.3", "read_too_early", ("    reader", "        reader"), ("    return", "        return"))
edited("09.3", "read_too_early", ("    reader", "        writer.flush()\n        reader"))
edited(
    "09.3",
    "other_tags",
    ("in reader.Images(tag)", 'for t in reader.Tags()["images"] for event in reader.Images(t)'),
    ("for event for", "for"),
)
edited("09.3", "only_some", ('"images": 0', '"images": 10'))
edited("09.3", "only_some", ('"images": 0', '"images": 1'))
edited_unnamed("09.3", "read", ("return [(", "return tuple(("), ("(tag)]", "(tag))"))
edited_unnamed("09.3", "read", ("return [(", "return {("), ("(tag)]", "(tag)}"))
edited_unnamed("09.3", "read", ("(tag)]", "(tag)[::-1]]"))
edited_unnamed("09.3", "pixels", ("(tag, picture", "(tag, picture.round_()"))
edited("09.3", "from_memory", ("(tag)]", "(tag) if event.step in pictures]"))
edited_unnamed("09.3", "steps", ("    with", "    shutil.rmtree(folder)\n    with"))
edited("09.3", "nothing_written", ("SummaryWriter(folder)", 'SummaryWriter(folder + "/new")'))
edited("09.3", "width_first", ("event.height, event.width", "event.width, event.height"))

edited("09.4", "squeezes", (".flatten()", ".squeeze()"))
edited_unnamed("09.4", "finds", (".tolist()", ".float().tolist()"))
edited_unnamed("09.4", "finds", ("return (", "return tuple(("), (".tolist()", ".tolist())"))
edited_unnamed("09.4", "finds", ("return (", "return set(("), (".tolist()", ".tolist())"))
edited("09.4", "not_sorted", (".tolist()", ".flip(0).tolist()"))
edited("09.4", "threshold", ("== 0)", "< 1e-6)"))
edited(
    "09.4",
    "threshold",
    ("(torch.stack(largest).amax(0) == 0)", "torch.isclose(torch.stack(largest).amax(0), torch.zeros(1))"),
)
edited("09.4", "none_found", ("output.detach()", "args[0].detach()"))
edited(
    "09.4",
    "none_found",
    ("        for", "        largest.append(batches[0].amax((0, 2, 3)))\n        for"),
    ("            model(batch)", "            pass"),
)
edited(
    "09.4",
    "once_each",
    ("        for batch in batches:\n            model(batch)", "        model(torch.cat(batches))"),
    points=5,
)
edited("09.4", "once_each", ("    with relu", "    model(batches[0])\n    with relu"), points=5)
edited("09.4", "last_batch_only", ("largest.append(", "largest[:] = ["), ("(0, 2, 3)))", "(0, 2, 3))]"))
edited(
    "09.4",
    "mode",
    ("    with relu", "    was = model.training\n    model.eval()\n    with relu"),
    ("    return", "    model.train(was)\n    return"),
    points=5,
)
edited(
    "09.4",
    "argument",
    ("batch in batches", "batch in iter(lambda: batches.pop(0) if batches else None, None)"),
    points=5,
)
edited(
    "09.4",
    "swallows",
    (
        "            model(batch)",
        "            try:\n                model(batch)\n            except RuntimeError:\n                pass",
    ),
    points=5,
)

edited("09.5", "no_abs", ("(seen[name] - found[name]).abs()", "(found[name] - seen[name])"))
edited("09.5", "no_abs", (".abs()", ".relu()"))
edited_unnamed("09.5", "differences", (".abs().max()", ".abs().sum()"))
edited_unnamed("09.5", "differences", (".abs().max()", ".norm()"))
edited_unnamed("09.5", "differences", (".abs().max()", ".abs().flatten()[0]"))
edited_unnamed(
    "09.5", "differences", ("max().item() for name in names", "max().item() for name in sorted(names)[1:]")
)
edited_unnamed("09.5", "differences", ("item() for", "item() // 2 for"))
edited("09.5", "not_by_name", ("return {name: (", "return [("), ("names}", "names]"))
edited(
    "09.5",
    "one_at_a_time",
    ("(seen[name] - found[name])", "(seen[name] - create_feature_extractor(model, [name])(x)[name])"),
    ("    found = create_feature_extractor(model, list(names))(x)\n", ""),
)
edited(
    "09.5",
    "argument",
    ("    for name in names:\n        handles", "    names.sort()\n    for name in names:\n        handles"),
    points=6,
)
