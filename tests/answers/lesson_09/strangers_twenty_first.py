"""Wrong answers to lesson 09 that were accepted from strangers in the twenty-first round: what is empty counts, all hooks go."""

import math

import torch

from hookedu import remove_hooks
from tests.answers import edited, mistake, unnamed


@unnamed("09.2", "grid")
def one_scale(maps, columns):
    c, h, w = maps.shape
    rows = math.ceil(c / columns)
    tiles = torch.cat([maps, maps.new_zeros(rows * columns - c, h, w)])
    low, high = tiles.min(), tiles.max()  # of the empty places, too
    if low == high:
        return torch.zeros(rows * h, columns * w)
    tiles = (tiles - low) / (high - low)
    tiles[c:] = 0
    return torch.cat([torch.cat(list(tiles[r * columns : (r + 1) * columns]), dim=1) for r in range(rows)])


edited("09.4", "threshold", (".amax(0) == 0", ".amax(0) <= 1e-38"))


@mistake("09.4", "others", points=5)
def dead_channels(model, relu, batches):
    alive = False
    with relu.register_forward_hook(
        lambda m, args, output: outputs.append((output != 0).any(3).any(2).any(0))
    ):
        for batch in batches:
            outputs = []
            with torch.no_grad():
                model(batch)
            alive = alive | torch.stack(outputs).any(0)
    remove_hooks(model, owner="user")
    return [channel for channel, lives in enumerate(alive.tolist()) if not lives]


# A hook of somebody else may change what goes in; `forward` goes around it.
edited("09.4", "calls_forward", ("model(batch)", "model.forward(batch)"), points=5)
# A channel that is the same everywhere does not vary, but it lives.
edited("09.4", "finds", (".amax((0, 2, 3))", ".std((0, 2, 3))"), named=False)
