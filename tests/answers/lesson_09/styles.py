"""Right answers to the exercises of lesson 09 in further styles."""

import copy
import math
import pickle
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from functools import partial, partialmethod, reduce
from itertools import zip_longest

import numpy as np
import torch
import torch.nn.functional as F
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor

from hookedu import record
from tests.answers import alternative


@alternative("09.1")
def conv_groups(model, x):
    class Keeper(dict):
        def __call__(self, module, args, output):
            self.setdefault(module.weight.size(), []).append(copy.deepcopy(output.detach()))

    keeper, handles = Keeper(), []
    try:
        handles += [m.register_forward_hook(keeper) for m in model.modules() if isinstance(m, nn.Conv2d)]
        model(x)
        return keeper
    finally:
        while handles:
            handles.pop().remove()


@alternative("09.1")
def conv_groups(model, x):
    calls = []

    def keep(module, args, output):
        if isinstance(module, nn.Conv2d):
            calls.append((tuple(module.weight.shape), pickle.loads(pickle.dumps(output.detach()))))

    with nn.modules.module.register_module_forward_hook(keep):
        model(x)
    return {shape: [out for key, out in calls if key == shape] for shape, _ in calls}


@alternative("09.1")
def conv_groups(model, x):
    @contextmanager
    def hooked(hook):
        handles = []
        try:
            for module in model.modules():
                if nn.Conv2d in module.__class__.__mro__:
                    handles.append(module.register_forward_hook(hook))
            yield
        finally:
            for handle in handles:
                handle.remove()

    groups = OrderedDict()

    def keep(groups, module, args, output):
        if (shape := tuple(module.weight.shape)) not in groups:
            groups[shape] = []
        groups[shape] += [output.data.clone()]

    with hooked(partial(keep, groups)):
        model(x)
    return groups


@alternative("09.1")
def conv_groups(model, x):
    def walk(module):
        if isinstance(module, nn.Conv2d):
            yield module
        for child in module.children():
            yield from walk(child)

    groups, handles = defaultdict(list), []
    try:
        for conv in dict.fromkeys(walk(model)):  # a shared one comes twice
            key = tuple(conv.weight.shape)
            handles.append(
                conv.register_forward_hook(lambda m, a, out, key=key: groups[key].append(out.detach().mul(1)))
            )
        model(x)
    finally:
        [handle.remove() for handle in handles]
    return groups


@alternative("09.2")
def one_scale(maps, columns):
    scaled = torch.nan_to_num((maps - maps.min()) / (maps.max() - maps.min()))
    rows = [torch.cat(list(row), dim=1) for row in scaled.split(columns)]
    return torch.cat([F.pad(row, (0, rows[0].shape[1] - row.shape[1])) for row in rows])


@alternative("09.2")
def one_scale(maps, columns):
    C, H, W = maps.shape
    values = maps.numpy().astype(np.float32)
    span = float(np.ptp(values))
    out = np.zeros((math.ceil(C / columns) * H, columns * W), dtype=np.float32)
    for i, one in enumerate(values):
        out[i // columns * H :, i % columns * W :][:H, :W] = (one - values.min()) / span if span else 0
    return torch.from_numpy(out)


@alternative("09.2")
def one_scale(maps, columns):
    low, high = torch.aminmax(maps)
    scaled = torch.zeros_like(maps) if low == high else maps.sub(low).div_(high - low)
    empty = torch.zeros_like(maps[0])
    rows = zip_longest(*[iter(scaled)] * columns, fillvalue=empty)
    return torch.vstack([torch.hstack(row) for row in rows])


@alternative("09.2")
def one_scale(maps, columns):
    missing = -len(maps) % columns
    span = (maps.max() - maps.min()).clamp(min=torch.finfo(torch.float32).tiny)
    tiles = torch.cat([(maps - maps.min()) / span, maps.new_zeros(missing, *maps.shape[1:])])
    return torch.cat([torch.cat(tuple(t), -1) for t in tiles.unflatten(0, (-1, columns))], 0)


@alternative("09.3")
def log_maps(folder, tag, pictures):
    writer = SummaryWriter(folder)
    for step, picture in pictures.items():
        writer.add_image(tag, picture.numpy(), step, dataformats="HW")
    writer.close()
    reader = EventAccumulator(folder, size_guidance={"images": 0})
    return [(e.step, e.height, e.width) for e in reader.Reload().Images(tag)]


@alternative("09.3")
def log_maps(folder, tag, pictures):
    def write():
        with SummaryWriter(log_dir=folder) as writer:
            for step, picture in pictures.items():
                writer.add_image(tag, picture.unsqueeze(0), step)

    write()
    result = []
    for event in EventAccumulator(folder, {"images": 0}).Reload().Images(tag):
        result.append((event.step, event.height, event.width))
    return result


@alternative("09.3")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step in pictures:
            writer.add_images(tag, pictures[step][None, None], global_step=step)
    found = []
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    found.extend(reader.Images(tag))
    return list(map(lambda e: (e.step, e.height, e.width), found))


@alternative("09.4")
def dead_channels(model, relu, batches):
    class Alive:
        def __init__(self):
            self.channels = set()
            self.count = 0

        def __call__(self, module, args, output):
            self.count = output.shape[1]
            self.channels |= set(output.detach().nonzero()[:, 1].tolist())

    alive = Alive()
    with relu.register_forward_hook(alive), torch.inference_mode():
        [model(batch) for batch in batches]
    return sorted(set(range(alive.count)) - alive.channels)


@alternative("09.4")
def dead_channels(model, relu, batches):
    totals = []

    def hook(module, args, output):
        totals.append(output.detach().numpy().max(axis=(0, 2, 3)))

    handle = relu.register_forward_hook(hook)
    try:
        for batch in iter(batches):
            model(batch)
    finally:
        handle.remove()
    return list(np.flatnonzero(np.max(totals, axis=0) == 0))


@alternative("09.4")
def dead_channels(model, relu, batches):
    seen = []

    def hook(module, args, output):
        if module is relu:
            seen.append(args[0].detach().clamp(min=0).amax(dim=(0, 2, 3)))

    handle = torch.nn.modules.module.register_module_forward_hook(hook)
    try:
        for batch in batches:
            model(batch)
    finally:
        handle.remove()
    top = reduce(torch.maximum, seen)
    return [i for i, value in enumerate(top) if value == 0]


@alternative("09.4")
def dead_channels(model, relu, batches):
    dead = None

    def look(module, args, output):
        nonlocal dead
        quiet = (output == 0).all(dim=3).all(dim=2).all(dim=0)
        dead = quiet if dead is None else dead & quiet

    with relu.register_forward_hook(look):
        for n in range(len(batches)):
            model(batches[n])
    return torch.arange(len(dead))[dead].tolist()


@alternative("09.4")
def dead_channels(model, relu, batches):
    def outputs():
        kept = []
        with relu.register_forward_hook(lambda m, a, out: kept.append(out.clone()) or None):
            for batch in batches:
                model(batch)
                yield from kept
                kept.clear()

    largest = torch.stack([out.flatten(2).max(-1).values.max(0).values for out in outputs()])
    return torch.where(~largest.any(0))[0].tolist()


@alternative("09.5")
def disagreement(model, x, names):
    with torch.no_grad():
        found = create_feature_extractor(model, {name: name for name in names})(x)

    class Compare:
        result = {}

        def __init__(self):
            self.result = dict.fromkeys(names)

        def hook(self, name, module, args, output):
            self.result[name] = float((output - found[name]).abs().max())

        compare = partialmethod(hook)

    compare, handles = Compare(), []
    try:
        for name, module in model.named_modules():
            if name in names:
                handles.append(module.register_forward_hook(partial(compare.compare, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return compare.result


@alternative("09.5")
def disagreement(model, x, names):
    seen = {}

    def keeper(name):
        def keep(module, args, output):
            seen[name] = output.detach().numpy().copy()

        return keep

    handles = [model.get_submodule(name).register_forward_hook(keeper(name)) for name in names]
    model(x)
    for handle in handles:
        handle.remove()
    found = create_feature_extractor(model, names)(x)
    return {name: np.abs(seen[name] - found[name].detach().numpy()).max() for name in names}


@alternative("09.5")
def disagreement(model, x, names):
    extractor = create_feature_extractor(model, return_nodes=list(names))
    with record(model, layers=list(names)) as rec:
        model(x)
    pairs = zip(names, map(extractor(x).get, names), strict=True)
    return {n: F.l1_loss(rec[n].activation, out, reduction="none").max() for n, out in pairs}


@alternative("09.5")
def disagreement(model, x, names):
    seen = dict()
    modules = {module: name for name, module in model.named_modules()}

    def keep(module, args, output):
        if (name := modules.get(module)) in names:
            seen.setdefault(name, output.detach().clone())

    handle = nn.modules.module.register_module_forward_hook(keep)
    try:
        model(x)
    finally:
        handle.remove()
    found = create_feature_extractor(model, names)(x)
    worst = {}
    for name in names:
        difference = seen[name] - found[name]
        worst[name] = max(difference.max().item(), -difference.min().item())
    return worst
