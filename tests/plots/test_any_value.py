"""Whatever a model returns has a picture or a message in its place, of a bounded size."""

import warnings
from collections import namedtuple
from dataclasses import dataclass

import matplotlib
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import nn

from hookedu import plot_feature_maps, plot_gradients, plot_graph, plot_sharing, plot_stats, record

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.bool,
    torch.uint8,
    torch.int64,
    torch.complex64,
    torch.complex128,
]
ODD = [torch.nan, torch.inf, -torch.inf, 0.0, 1.7e308, -3.4e38, 1e-310]
Pair = namedtuple("Pair", "left right")


@dataclass
class Answer:
    logits: object
    hidden: object = None


class Plain:
    """An object of a class that nobody has told us about."""

    def __init__(self, value) -> None:
        self.value = value


def nested(tensor, layout):
    return torch.nested.nested_tensor([tensor, tensor[: len(tensor) // 2]], layout=layout)


def odd(tensor, value):
    """Return the tensor with one odd element; of a float16 the largest number becomes infinite."""
    if tensor.numel() and tensor.is_floating_point():
        tensor.view(-1)[0] = torch.tensor(value, dtype=torch.float64).to(tensor.dtype)
    return tensor


KINDS = {
    "dense": lambda t: t,
    "odd": lambda t: [odd(t.clone(), value) for value in ODD],
    "sparse": lambda t: t.to_sparse(),
    "csr": lambda t: t.reshape(max(len(t), 1), -1).to_sparse_csr() if t.dim() and t.numel() else t,
    "huge sparse": lambda t: torch.sparse_coo_tensor([[0], [1]], [1.0], (10**6, 10**6)),
    "nested": lambda t: nested(t, torch.strided) if t.dim() > 0 else t,
    "jagged": lambda t: nested(t, torch.jagged) if t.dim() > 0 else t,
    "meta": lambda t: t.to("meta"),
    "quantized": lambda t: torch.quantize_per_tensor(t.abs().float(), 0.1, 0, torch.quint8),
    "transposed": lambda t: t.mT if t.dim() > 1 else t,
    "expanded": lambda t: t[None].expand(3, *t.shape),
    "wide": lambda t: torch.ones(2, 3, 3000).to(t.dtype),
    "attached": lambda t: t.clone().requires_grad_() if t.is_floating_point() else t,
}
STRUCTURES = {
    "alone": lambda v: v,
    "tuple": lambda v: (v, None, 3, v),
    "named tuple": lambda v: Pair(v, {"again": [v]}),
    "dict": lambda v: {"out": v, "attentions": (v, v), "n": 2},
    "dataclass": lambda v: Answer(v, hidden=(v, v)),
    "object": lambda v: Plain({"deep": v}),
    "list of 20": lambda v: [v] * 20,
    "cycle": lambda v: (loop := [v]).append(loop) or loop,
}


@st.composite
def values(draw):
    shape = draw(st.lists(st.integers(0, 7), max_size=6))
    dtype, kind = draw(st.sampled_from(DTYPES)), draw(st.sampled_from([*KINDS]))
    dense = torch.randn(shape, generator=torch.Generator().manual_seed(0)).mul(3)
    try:
        value = KINDS[kind](dense.to(dtype))
    except (RuntimeError, NotImplementedError):  # PyTorch has no such tensor, as of bool in CSR
        value = dense.to(dtype)
    return STRUCTURES[draw(st.sampled_from([*STRUCTURES]))](value)


class Returning(nn.Module):
    def __init__(self, value) -> None:
        super().__init__()
        self.value = value

    def forward(self):
        return self.value


def drawn(ax):
    """Draw the figure, check its size, and return it to nobody."""
    with warnings.catch_warnings():  # matplotlib's, of glyphs and of the arithmetic of extreme numbers
        warnings.simplefilter("ignore")
        ax.figure.draw_without_rendering()
    width, height = ax.figure.get_size_inches()
    assert width <= 20 and height <= 30
    plt.close(ax.figure)


QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25, print_blob=True)


PLOTS = {
    "maps": plot_feature_maps,
    "gradients": plot_gradients,
    "stats": lambda value: plot_stats({"value": value}),
    "layer": lambda value: plot_feature_maps(recorded(value)[""]),
    "recording": lambda value: plot_feature_maps(recorded(value)),
    "stats of a recording": lambda value: plot_stats(recorded(value)),
}


def recorded(value):
    model = Returning(value)
    with record(model, "") as rec:
        model()
    return rec


@QUIET
@given(values(), st.sampled_from([*PLOTS]))
@example(torch.ones(2, 3, 10), "layer")
@example((torch.empty([0] * 6), 3), "maps")
@example(KINDS["huge sparse"](torch.ones(1)), "stats")
@example(KINDS["nested"](torch.ones(2, 1, 1, 1, 1, 1)), "maps")
@example(KINDS["odd"](torch.ones((), dtype=torch.float64)), "stats")
@example([torch.tensor([8e307, -8e307], dtype=torch.float64)], "stats of a recording")
def test_every_value_has_a_picture(value, plot):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of prototypes: nested and sparse tensors
        drawn(PLOTS[plot](value))


@settings(QUIET, max_examples=8)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=12),
    st.integers(1, 60),
    st.booleans(),
)
def test_every_graph_has_a_picture(shapes, length, wide):
    leaves = {f"x{i}": torch.ones(shape, requires_grad=True) for i, shape in enumerate(shapes)}
    tensors, total = dict(leaves), sum(leaf.sum() for leaf in leaves.values())
    tensors["total"] = total
    for i in range(length):
        if wide:
            tensors[f"w{i}"] = torch.ones((), requires_grad=True)
            total = total + tensors[f"w{i}"]
        else:
            total = tensors[f"h{i}"] = total * 2
    tensors["end"] = total = total * 1
    drawn(plot_graph(total, tensors))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tensor_shares_memory_or_not(kind):
    value = KINDS[kind](torch.randn(4, 4))
    drawn(
        plot_sharing(
            {str(i): one for i, one in enumerate(value if isinstance(value, list) else [value, value])}
        )
    )
