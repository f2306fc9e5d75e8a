"""Benchmark of LayerPicker in the kernel: minima of several runs, beside what the same takes without it.

Opening ResNet-50 is given without one forward pass, which it cannot do without; what a click on a recorded layer costs the
kernel, as a ratio to 64 subplots drawn by matplotlib, the usual way to show 64 feature maps.
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
    says = "ok" if milliseconds < bound else "MISSED"
    print(f"{what:52} {milliseconds:8.1f} ms   bound {bound:6.0f} ms   {says}")


if __name__ == "__main__":
    model, x = resnet50().eval(), torch.randn(1, 3, 224, 224)
    forward = best(lambda: model(x))
    opened = best(lambda: LayerPicker(model, x).close(), 3)
    report("ResNet-50 opens, without one forward pass", opened - forward, 1000)

    picker = LayerPicker(model, x)
    for layers, size in (("layer3.0.conv", "14×14"), ("layer1.0.conv", "56×56")):
        names = [f"{layers}{number}" for number in (1, 2)]

        def click(names: list[str] = names) -> None:
            """Choose the other layer; `shown` waits for what it shows."""
            picker.value = names[picker.value == names[0]]
            assert picker.shown is not None

        click()
        click()  # from now on both layers are recorded
        cached = best(click, 12)
        report(f"a click on a recorded layer, {size}", cached, 100)
        redrawn = best(lambda: subplots(picker.shown[:64]))
        print(
            f"{'64 subplots drawn instead':52} {redrawn:8.1f} ms   a click takes {cached / redrawn:.3f} of that"
        )
    picker.close()

    deep = nn.Sequential(*(nn.Identity() for _ in range(1000)))
    report("1,000 modules open", best(lambda: LayerPicker(deep, torch.ones(1, 2)).close()), 1000)
