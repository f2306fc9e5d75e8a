"""Answers to 09.4, `dead_channels`."""

import torch

from hookedu import record
from tests.answers import alternative, mistake


@alternative("09.4")
def dead_channels(model, relu, batches):
    alive = False

    def look(module, args, output):
        nonlocal alive
        alive = alive | (output > 0).any(0).flatten(1).any(1)

    handle = relu.register_forward_hook(look)
    try:
        for batch in batches:
            model(batch)
    finally:
        handle.remove()
    return [channel for channel, lives in enumerate(alive.tolist()) if not lives]


@alternative("09.4")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return torch.where(sum(maps.sum((0, 2, 3)) for maps in kept) == 0)[0]


@alternative("09.4")
def dead_channels(model, relu, batches):
    name = next(n for n, m in model.named_modules() if m is relu)
    with record(model, layers=name) as rec:
        for batch in batches:
            model(batch)
    maps = torch.cat([call.activation.movedim(1, 0).flatten(1) for call in rec[name].calls], 1)
    return [c for c in range(len(maps)) if not maps[c].any()]


@mistake("09.4", "overwritten")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "none_found")
def dead_channels(model, relu, batches):
    kept = []
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (torch.cat(kept).amax((1, 2, 3)) == 0).nonzero().flatten().tolist()


@mistake("09.4", "none_found")
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


@mistake("09.4", "mode", points=5)
def dead_channels(model, relu, batches):
    kept = []
    model.eval()
    with relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        for batch in batches:
            model(batch)
    return (sum(maps.sum((0, 2, 3)) for maps in kept) == 0).nonzero().flatten().tolist()


@mistake("09.4", "hooks", points=5)
def dead_channels(model, relu, batches):
    kept = []
    relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone()))
    for batch in batches:
        model(batch)
    return (sum(maps.sum((0, 2, 3)) for maps in kept) == 0).nonzero().flatten().tolist()


@mistake("09.4", "others", points=5)
def dead_channels(model, relu, batches):
    kept = []
    relu.register_forward_hook(lambda m, args, output: kept.append(output.detach().clone()))
    for batch in batches:
        model(batch)
    relu._forward_hooks.clear()
    return (sum(maps.sum((0, 2, 3)) for maps in kept) == 0).nonzero().flatten().tolist()
