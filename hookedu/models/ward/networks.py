"""The networks of the ward, put together from a chart. What is wrong with one is done to it in `faults`."""

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from hookedu.models.ward.charts import Chart

SIDE = 8  # pixels of an image
_ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh}
_GAINS = {"relu": 2**0.5, "gelu": 1.5, "tanh": 1.5}  # with them activations stay as spread as they were
# Names of the first part, the further ones and the last; and in a part, of layer, normalisation and activation.
_NAMES = (
    ("stem", "block{}", "head", ("layer", "norm", "act")),
    ("inp", "stage{}", "out", ("linear", "scale", "nonlin")),
    ("embed", "hidden{}", "classifier", ("mix", "level", "fire")),
    ("0", "{}", "top", ("0", "1", "2")),
)
Layer = nn.Linear | nn.Conv2d
Norm = nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm
Path = Callable[[Tensor], Tensor]


class Standardise(nn.Module):
    """Each sample minus its mean, over its standard deviation."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        column = (len(x), *[1] * (x.dim() - 1))
        return (x - flat.mean(1).view(column)) / flat.std(1).view(column)


class Residual(nn.Module):
    """The input plus what `body` makes of it."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Fork(nn.Module):
    """What two branches make of the same input, side by side; `path` leads from the right one to its place."""

    def __init__(self, left: nn.Module, right: nn.Module, path: Path) -> None:
        super().__init__()
        self.left, self.right, self.path = left, right, path

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.left(x), self.path(self.right(x))], 1)


def network(chart: Chart, path: Path) -> nn.Sequential:
    """Return the network of a chart; the right branch of its fork, if it has one, is joined over `path`."""
    first, middle, last, _ = _NAMES[chart.names]
    parts: list[tuple[str, nn.Module]] = [("prepare", Standardise())] if chart.standardised else []
    width = chart.width
    parts.append((first, _part(chart, chart.features, width)))
    for place in range(1, chart.depth):
        part: nn.Module = _part(chart, width, width)
        if chart.fork and place == chart.depth - 1:
            part = Fork(part, _part(chart, width, width), path)
            width *= 2
        elif chart.residual:
            part = Residual(part)
        parts.append((middle.format(place), part))
    if chart.images:
        parts += [("pool", nn.MaxPool2d(2)), ("flat", nn.Flatten())]
        width *= (SIDE // 2) ** 2
    parts.append((last, nn.Linear(width, chart.classes)))
    return nn.Sequential(OrderedDict(parts))


def _part(chart: Chart, inputs: int, outputs: int) -> nn.Sequential:
    """Return a layer with its normalisation and its activation."""
    layer, norm, act = _NAMES[chart.names][3]
    parts: list[tuple[str, nn.Module]] = [
        (layer, nn.Conv2d(inputs, outputs, 3, padding=1) if chart.images else nn.Linear(inputs, outputs))
    ]
    if chart.norm == "batch":
        parts.append((norm, nn.BatchNorm2d(outputs) if chart.images else nn.BatchNorm1d(outputs)))
    elif chart.norm == "layer":
        parts.append((norm, nn.LayerNorm(outputs)))
    return nn.Sequential(OrderedDict([*parts, (act, _ACTIVATIONS[chart.activation]())]))


def layers_of(model: nn.Module) -> list[Layer]:
    """Return the linear and convolutional layers; the last one gives the logits."""
    return [m for m in model.modules() if isinstance(m, Layer)]


def norms_of(model: nn.Module) -> list[Norm]:
    """Return the normalisations, in the order of the layers that they follow."""
    return [m for m in model.modules() if isinstance(m, Norm)]


def initialise(model: nn.Module, chart: Chart, generator: torch.Generator) -> None:
    """Draw weights with which activations stay as spread as they were from layer to layer; biases are zero."""
    layers = layers_of(model)
    added = [layer for m in model.modules() if isinstance(m, Residual) for layer in layers_of(m)]
    for layer in layers:
        # A residual adds to what is there already, and logits begin small.
        gain = 0.6 if layer in added else _GAINS[chart.activation]
        if layer is layers[-1]:
            gain = 0.3 if chart.images else 0.6
        nn.init.normal_(layer.weight, std=gain / layer.weight[0].numel() ** 0.5, generator=generator)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
