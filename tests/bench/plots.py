"""Benchmark of a picture of 64 channels: one mosaic against one subplot per channel.

    python tests/bench/plots.py [rounds]

The feature maps are those of a convolution on a photograph, because noise would mostly measure PNG compression.
Both are drawn to a PNG in memory, in turn; the results are minima.
"""

import io
import sys
import time

import matplotlib
import torch
from matplotlib.cbook import get_sample_data
from torch import nn

from hookedu import plot_feature_maps

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def mosaic(maps: torch.Tensor):
    return plot_feature_maps(maps).figure


def subplots(maps: torch.Tensor):
    figure, axes = plt.subplots(8, 8, figsize=(6, 6))
    low, high = maps.min(), maps.max()
    for i, ax in enumerate(axes.flat):
        ax.imshow(maps[0, i], vmin=low, vmax=high)
        ax.set_title(f"ch {i}", fontsize=6)
        ax.set_axis_off()
    return figure


if __name__ == "__main__":
    torch.manual_seed(0)
    with get_sample_data("grace_hopper.jpg") as file:
        photograph = torch.tensor(plt.imread(file)).permute(2, 0, 1)[None] / 255
    photograph = nn.functional.interpolate(photograph, (112, 112), mode="area")
    maps = nn.Conv2d(3, 64, 7, stride=2, padding=3)(photograph).detach()  # 1×64×56×56
    best = {mosaic: float("inf"), subplots: float("inf")}
    for _ in range(ROUNDS + 1):
        for draw in best:
            start = time.perf_counter()
            figure = draw(maps)
            figure.savefig(io.BytesIO(), format="png")
            plt.close(figure)
            best[draw] = min(best[draw], time.perf_counter() - start)
    for draw, seconds in best.items():
        print(f"{draw.__name__:<10} {seconds * 1e3:8.1f} ms   {seconds / best[subplots]:5.2f} × subplots")
