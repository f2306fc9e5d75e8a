"""Right and wrong answers to the exercises of lesson 09."""

import copy
import math
from collections import defaultdict
from contextlib import ExitStack
from functools import partial

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.utils import make_grid

from hookedu import record
from tests.answers import alternative, mistake

# --- 09.1 ---------------------------------------------------------------------------------------------------


@alternative("09.1")
def conv_groups(model, x):
    groups = {}

    def keep(module, args, output):
        groups.setdefault(module.weight.shape, []).append(output.detach().clone())

    with ExitStack() as stack:
        for module in filter(lambda m: isinstance(m, nn.Conv2d), model.modules()):
            stack.enter_context(module.register_forward_hook(keep))
        with torch.no_grad():
            model(x)
    return groups


@alternative("09.1")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(torch.tensor(output.tolist()))

    for name, module in model.named_modules():
        if type(module) is nn.Conv2d:
            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        [handle.remove() for handle in handles]
    return groups


@mistake("09.1", "overwritten")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "overwritten")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output)

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return {shape: [output.detach().clone() for output in outputs] for shape, outputs in groups.items()}


@mistake("09.1", "plus_equals")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach())

    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "last_call_only")
def conv_groups(model, x):
    groups, handles = {}, []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)] = output.detach().clone()

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "last_call_only")
def conv_groups(model, x):
    groups, handles = {}, []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)] = [output.detach()]

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "runs_twice")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    print(model(x).shape)
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "kernel_size")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[module.kernel_size].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "output_shape")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(output.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "by_name")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(name, module, args, output):
        groups[name].append(output.detach().clone())

    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(partial(keep, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "only_children")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.children():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "late_binding")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            shape = tuple(module.weight.shape)
            handles.append(
                module.register_forward_hook(lambda m, args, out: groups[shape].append(out.detach().clone()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "every_module")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "returns_nothing")
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(keep)
    model(x)


@mistake("09.1", "attached", points=7)
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


@mistake("09.1", "cuts_gradient")
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())
        return output.detach().clone()

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(keep))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return groups


@mistake("09.1", "changes_model", points=6)
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


@mistake("09.1", "leaves_hooks", points=6)
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(keep)
    model(x)
    return groups


@mistake("09.1", "removes_others", points=7)
def conv_groups(model, x):
    groups = defaultdict(list)

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    try:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_hook(keep)
        model(x)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
    return groups


@mistake("09.1", "no_finally", points=7)
def conv_groups(model, x):
    groups, handles = defaultdict(list), []

    def keep(module, args, output):
        groups[tuple(module.weight.shape)].append(output.detach().clone())

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
    model(x)
    for handle in handles:
        handle.remove()
    return groups


# --- 09.2 ---------------------------------------------------------------------------------------------------


@alternative("09.2")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]


@alternative("09.2")
def one_scale(maps, columns):
    C, H, W = maps.shape
    picture = torch.zeros(-(-C // columns) * H, columns * W)
    span = (maps.max() - maps.min()).item() or 1.0
    for i in range(C):
        r, c = divmod(i, columns)
        picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = (maps[i] - maps.min()) / span
    return picture


@mistake("09.2", "per_map")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True, scale_each=True)[0]


@mistake("09.2", "no_shift")
def one_scale(maps, columns):
    return make_grid(maps[:, None] / maps.max(), nrow=columns, padding=0)[0]


@mistake("09.2", "by_size")
def one_scale(maps, columns):
    return make_grid(maps[:, None] / maps.abs().max(), nrow=columns, padding=0)[0]


@mistake("09.2", "only_positive")
def one_scale(maps, columns):
    return make_grid(maps[:, None].relu() / maps.max(), nrow=columns, padding=0)[0]


@mistake("09.2", "pads_first")
def one_scale(maps, columns):
    picture = make_grid(maps[:, None], nrow=columns, padding=0)[0]
    return (picture - picture.min()) / (picture.max() - picture.min())


@mistake("09.2", "column_by_column")
def one_scale(maps, columns):
    C, H, W = maps.shape
    rows = math.ceil(C / columns)
    picture = torch.zeros(rows * H, columns * W)
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    for i in range(C):
        c, r = divmod(i, rows)
        picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = scaled[i]
    return picture


@mistake("09.2", "rows_for_columns")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=math.ceil(len(maps) / columns), padding=0, normalize=True)[0]


@mistake("09.2", "drops_rest")
def one_scale(maps, columns):
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    rows = [torch.cat(list(scaled[r * columns : (r + 1) * columns]), 1) for r in range(len(maps) // columns)]
    return torch.cat(rows)


@mistake("09.2", "forgot_permute")
def one_scale(maps, columns):
    C, H, W = maps.shape
    rows = math.ceil(C / columns)
    tiles = torch.zeros(rows * columns, H, W)
    tiles[:C] = (maps - maps.min()) / (maps.max() - maps.min())
    return tiles.reshape(rows * H, columns * W)


@mistake("09.2", "to_255")
def one_scale(maps, columns):
    return 255 * make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]


@mistake("09.2", "to_255")
def one_scale(maps, columns):
    return (255 * make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]).to(torch.uint8)


@mistake("09.2", "gaps")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, normalize=True)[0]


@mistake("09.2", "three_channels")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)


@mistake("09.2", "divides_by_zero", points=4)
def one_scale(maps, columns):
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    return make_grid(scaled[:, None], nrow=columns, padding=0)[0]


@mistake("09.2", "in_place", points=4)
def one_scale(maps, columns):
    maps -= maps.min()
    if maps.max() > 0:
        maps /= maps.max()
    return make_grid(maps[:, None], nrow=columns, padding=0)[0]


@mistake("09.2", "returns_nothing")
def one_scale(maps, columns):
    picture = make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]


# --- 09.3 ---------------------------------------------------------------------------------------------------


@alternative("09.3")
def log_maps(folder, tag, pictures):
    writer = SummaryWriter(log_dir=folder)
    try:
        for step in sorted(pictures):
            writer.add_image(tag, pictures[step][None], global_step=step)
    finally:
        writer.close()
    reader = EventAccumulator(folder, size_guidance={"images": 1000})
    reader.Reload()
    return [[event.step, event.height, event.width] for event in reader.Images(tag)]


@alternative("09.3")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, (255 * picture).to(torch.uint8), step, dataformats="HW")
    events = EventAccumulator(str(folder), {"images": 0}).Reload().Images(tag)
    return [(e.step, e.height, e.width) for e in events]


@mistake("09.3", "not_closed")
def log_maps(folder, tag, pictures):
    writer = SummaryWriter(folder)
    for step, picture in pictures.items():
        writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "nothing_written")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        pass
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "no_step")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "counts_steps")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in enumerate(pictures.values()):
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "tag_per_step")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(f"{tag}/{step}", picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(e.step, e.height, e.width) for t in reader.Tags()["images"] for e in reader.Images(t)]


@mistake("09.3", "times_255")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, 255 * picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "transposed")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture.T, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "wrong_format")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step)
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "no_reload")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0})
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "only_some")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "only_some")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": len(pictures)}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "from_memory")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    return [(step, *picture.shape) for step, picture in pictures.items()]


@mistake("09.3", "width_first")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.width, event.height) for event in reader.Images(tag)]


@mistake("09.3", "whole_events")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    return EventAccumulator(folder, size_guidance={"images": 0}).Reload().Images(tag)


@mistake("09.3", "returns_nothing")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    print(reader.Images(tag))


# --- 09.4 ---------------------------------------------------------------------------------------------------


@alternative("09.4")
def dead_channels(model, relu, batches):
    alive = False

    def look(module, args, output):
        nonlocal alive
        alive = alive | (output > 0).any(0).flatten(1).any(1)

    handle = relu.register_forward_hook(look)
    for batch in batches:
        model(batch)
    handle.remove()
    return [channel for channel, lives in enumerate(alive.tolist()) if not lives]


@alternative("09.4")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return torch.where(torch.cat(kept).sum((0, 2, 3)) == 0)[0]


@alternative("09.4")
def dead_channels(model, relu, batches):
    name = next(n for n, m in model.named_modules() if m is relu)
    with record(model, layers=name) as rec:
        for batch in batches:
            model(batch)
    maps = torch.cat([call.activation for call in rec[name].calls])
    return [c for c in range(maps.shape[1]) if not maps[:, c].any()]


@mistake("09.4", "overwritten")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "overwritten")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((1, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "overwritten")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(args[0].detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "last_batch_only")
def dead_channels(model, relu, batches):
    seen = {}
    with relu.register_forward_hook(lambda m, args, output: seen.update(maps=output.detach().clone())):
        for batch in batches:
            model(batch)
    return (seen["maps"].amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "first_batch_only")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        model(batches[0])
    return (kept[0].amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "one_picture_only")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output[0].detach().clone())):
        for batch in batches:
            model(batch)
    return (kept[0].amax((1, 2)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "quiet_somewhere")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((2, 3)) == 0).any(0).nonzero().flatten().tolist()


@mistake("09.4", "threshold")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) < 1e-3).nonzero().flatten().tolist()


@mistake("09.4", "smallest")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amin((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "inverted")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return torch.cat(kept).amax((0, 2, 3)).nonzero().flatten().tolist()


@mistake("09.4", "returns_mask")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return torch.cat(kept).amax((0, 2, 3)) == 0


@mistake("09.4", "counts")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).sum().item()


@mistake("09.4", "returns_nothing")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    print((torch.cat(kept).amax((0, 2, 3)) == 0).nonzero())


@mistake("09.4", "changes_model", points=5)
def dead_channels(model, relu, batches):
    kept = []
    model.eval()
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "leaves_hooks", points=5)
def dead_channels(model, relu, batches):
    kept = []
    relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone()))
    for batch in batches:
        model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "removes_others", points=5)
def dead_channels(model, relu, batches):
    kept = []
    relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone()))
    for batch in batches:
        model(batch)
    relu._forward_hooks.clear()
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


# --- 09.5 ---------------------------------------------------------------------------------------------------


@alternative("09.5")
def disagreement(model, x, names):
    with record(model, layers=names) as rec, torch.no_grad():
        model(x)
    found = create_feature_extractor(model, return_nodes={name: name for name in names})(x)
    return {name: torch.dist(rec[name].activation, found[name], p=float("inf")).item() for name in names}


@alternative("09.5")
def disagreement(model, x, names):
    found = create_feature_extractor(model, names)(x)
    result = {}
    for name in names:

        def compare(module, args, output, name=name):
            result[name] = torch.max(torch.abs(found[name] - output))

        with model.get_submodule(name).register_forward_hook(compare):
            model(x)
    return result


@mistake("09.5", "overwritten")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "one_at_a_time")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = {name: create_feature_extractor(model, [name])(x)[name] for name in names}
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "all_zero")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).max().item() for name in names}


@mistake("09.5", "all_zero")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    safe = copy.deepcopy(model)
    for module in safe.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    found = create_feature_extractor(safe, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "signed")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).min().item() for name in names}


@mistake("09.5", "mean")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().mean().item() for name in names}


@mistake("09.5", "not_a_number")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs() for name in names}


@mistake("09.5", "only_says_whether")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: torch.equal(seen[name], found[name]) for name in names}


@mistake("09.5", "not_by_name")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return max((seen[name] - found[name]).abs().max().item() for name in names)


@mistake("09.5", "late_binding")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "returns_nothing")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    for name in names:
        print(name, (seen[name] - found[name]).abs().max().item())


@mistake("09.5", "changes_model")
def disagreement(model, x, names):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "changes_model", points=6)
def disagreement(model, x, names):
    model.eval()
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "leaves_hooks", points=6)
def disagreement(model, x, names):
    seen = {}
    for name in names:

        def hook(m, args, output, name=name):
            return seen.update({name: output.detach().clone()})

        model.get_submodule(name).register_forward_hook(hook)
    model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "removes_others", points=6)
def disagreement(model, x, names):
    seen = {}
    for name in names:

        def hook(m, args, output, name=name):
            return seen.update({name: output.detach().clone()})

        model.get_submodule(name).register_forward_hook(hook)
    model(x)
    for name in names:
        model.get_submodule(name)._forward_hooks.clear()
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "calls_now")
def disagreement(model, x, names):
    seen = {}
    for name in names:
        model.get_submodule(name).register_forward_hook(seen.clear())
    model(x)
    return seen
