"""What LayerPicker sends to the browser: numbers, as many as it can draw, and what is to be known of them.

A message holds either the whole layer, so that pages, channels and scales are turned over without asking again, or, of a
large layer, one page of its channels, of very large maps only some rows and columns.
"""

import math
from typing import Any

import torch
from torch import nn

from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import real, shape_text
from hookedu.plots.layouts import layout_of
from hookedu.plots.mosaic import range_of
from hookedu.widgets.pictures import TILES, Form, Selection, picture_in, widened
from hookedu.widgets.receptive import Field

MOST = 1 << 20  # numbers in one message: 4 MB
_INPUT = 256  # pixels: larger input pictures are thinned out
_BINS = 60

Sent = tuple[dict[str, Any], dict[str, torch.Tensor]]  # the content of a message, and its tensors


def maps(tensor: torch.Tensor, form: Form, selection: Selection, signed: bool, field: Field | None) -> Sent:
    """Return the feature maps of one sample: all channels, or the page of `selection` if they are too many."""
    index = form.index(Selection(selection.sample))
    channels = real(tensor[tuple(slice(None) if isinstance(i, slice) else i for i in index)].detach())
    scale = colours(channels, signed)
    height, width = channels.shape[-2:]
    first, last = (
        (0, form.channels) if form.numbers <= MOST else (selection.page * TILES, (selection.page + 1) * TILES)
    )
    channels = channels[first:last]
    step = 1
    while channels.numel() / step**2 > MOST:
        step += 1
    content = {
        "form": "maps",
        "first": first,
        "channels": form.channels,
        "tiles": TILES,
        "size": [height, width],
        "step": step,
        "scale": scale,
        "field": field and {"start": field.start, "size": field.size, "stride": field.stride},
    }
    if len(form.shape) == 5:
        content["depth"] = [form.shape[2] // 2, form.shape[2]]
    return content, {"values": channels[:, ::step, ::step]}


def matrix(values: torch.Tensor, signed: bool, axes: tuple[str, str], classes: list[str] | None) -> Sent:
    """Return a matrix, such as of positions × features, or a vector as its only row; of more dimensions likewise."""
    data = real(values.detach())
    data = data.reshape(1, -1) if data.dim() < 2 else data.flatten(0, -2)
    rows, columns = data.shape
    named = classes is not None and len(classes) == columns and axes[1] == "feature"
    across = -(-columns // MOST)
    down = 1
    while -(-rows // down) * -(-columns // across) > MOST:
        down += 1
    content = {
        "form": "matrix",
        "size": [rows, columns],
        "steps": [down, across],
        "axes": [f"axis_{axis}" for axis in (axes[0], "class" if named else axes[1])],
        # A vector for each sample is shown as bars, those of one sample at a time.
        "bars": rows == 1 or axes[0] == "sample",
        "scale": colours(data, signed),
        "signed": signed,
        "classes": classes if named else None,
    }
    return content, {"values": data[::down, ::across]}


_AXES = {"T": "token", "L": "token", "Q": "token", "K": "token", "N": "sample", "C": "feature"}


def axes_of(dimensions: int, shown: int, module: nn.Module | None, place: str) -> tuple[str, str]:
    """Return what the rows and the columns of a matrix are that is shown of a tensor; of a weight `module` is None."""
    if module is None:
        return ("out", "in") if shown == 2 else ("row", "unit")
    letters = layout_of(dimensions, module, place)
    letters = letters[-2:] if shown == 2 and len(letters) > 1 else letters[-1:]
    rows, columns = letters.rjust(2)
    if columns in "LHW" and rows == "C":
        return "channel", "token" if columns == "L" else "column"
    return _AXES.get(rows, "row"), _AXES.get(columns, "unit")


def histogram(tensor: torch.Tensor) -> Sent:
    """Return how often the finite values occur in each of 60 bins, and the zeros by themselves."""
    values = real(tensor.detach()).flatten().cpu()
    finite = values[values.isfinite()].double()
    rest = finite[finite != 0]
    content: dict[str, Any] = {"form": "statistics", "zeros": len(finite) - len(rest), "rest": len(rest)}
    low, high = (float(end) for end in rest.aminmax()) if len(rest) else (-0.5, 0.5)
    low, high = widened(low, high)
    counts = torch.histc(rest, _BINS, low, high) if len(rest) else torch.zeros(_BINS)
    stats = Stats(tensor)
    content["stats"] = {
        name: _json(getattr(stats, name)) for name in ("mean", "std", "min", "max", "zeros", "nan", "inf")
    }
    content |= {"low": low, "high": high, "mean": _json(stats.mean)}
    return content, {"counts": counts}


def _json(number: float) -> float | None:
    return number if math.isfinite(number) else None


def colours(data: torch.Tensor, signed: bool) -> dict[str, Any]:
    """Return the colour map and the range that all maps of a layer share."""
    finite = data if data.sum().isfinite() else data[data.isfinite()]  # copying takes longer than checking
    signed = signed or (finite.numel() > 0 and finite.min().item() < 0)
    low, high = range_of(finite, signed)
    return {"map": "RdBu_r" if signed else "viridis", "low": low, "high": high}


def input_picture(inputs: Any, sample: int) -> Sent:
    """Return the picture among the inputs of a model as pixels: three channels in colour, otherwise in grey."""
    image = picture_in(inputs, sample)
    if image is None or not image.numel() or image.is_meta:
        return {"shape": ""}, {}
    data = real(image.detach()).cpu().nan_to_num(0, 0, 0)
    step = -(-max(data.shape[1:]) // _INPUT)
    content = {"shape": shape_text(tuple(image.shape)), "size": list(data.shape[1:]), "channels": len(data)}
    if len(data) not in (1, 3):
        data = data.mean(0, keepdim=True)
    low, high = data.aminmax()
    unit = (data - low) / (high - low).clamp_min(1e-12)
    pixels = (255 * unit[:, ::step, ::step]).round().to(torch.uint8).movedim(0, -1)
    return content, {"pixels": pixels.expand(-1, -1, 3)}
