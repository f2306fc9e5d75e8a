"""Benchmark of LayerPicker in the kernel: minima of several runs, against the bounds of issue 4.

Bounds: opening ResNet-50 takes 1 s plus one forward pass; listing 1,000 modules, 200 ms; a click that draws 64 cached
maps, 150 ms, which is also given as a ratio to redrawing 64 subplots.
"""

import io
import time

import torch
from matplotlib.figure import Figure
from torch import nn
from torchvision.models import resnet50

from hookedu import LayerPicker

ROUNDS = 5


def best(run, rounds: int = ROUNDS) -> float:
    """Return the time of the fastest run in milliseconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return 1000 * min(times)


def subplots(maps: torch.Tensor) -> None:
    """Draw the picture in the usual way, with one Axes per map."""
    figure = Figure(figsize=(7.4, 7.4), dpi=110)
    for ax, one in zip(figure.subplots(8, 8).flat, maps, strict=True):
        ax.imshow(one)
        ax.set_axis_off()
    figure.savefig(io.BytesIO(), format="png")


def report(what: str, milliseconds: float, bound: float) -> None:
    print(
        f"{what:52} {milliseconds:8.0f} ms   bound {bound:6.0f} ms   {'ok' if milliseconds < bound else 'MISSED'}"
    )


model, x = resnet50().eval(), torch.randn(1, 3, 224, 224)
forward = best(lambda: model(x))
opened = best(lambda: LayerPicker(model, x).close(), 3)
report("ResNet-50 opens, without one forward pass", opened - forward, 1000)

picker = LayerPicker(model, x)
pages = iter(range(1000))


def click() -> None:
    picker._channels.value = -1
    picker._page.value = 1 + next(pages) % 3


picker.value = "layer3.0.conv3"
cached = best(click, 12)
report("a cached click draws 64 maps of 14×14", cached, 150)
picker.value = "layer1.0.conv3"
cached = best(click, 12)
report("a cached click draws 64 maps of 56×56", cached, 150)
maps = picker.shown
redrawn = best(lambda: subplots(maps))
print(f"{'64 subplots drawn again':52} {redrawn:8.0f} ms   a click takes {cached / redrawn:.2f} of that")

deep = nn.Sequential(*(nn.Identity() for _ in range(1000)))
picker = LayerPicker(deep, torch.ones(1, 2))
words = iter(f"identity {n}" for n in range(1000))


def search() -> None:
    picker._search.value = next(words)
    picker._search.value = ""


report("1,000 modules list", best(search), 200)
