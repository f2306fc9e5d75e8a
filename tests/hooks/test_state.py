"""restored(): a model of any kind is the same to the bit after a run, whatever the run has done to it."""

import contextlib
import io
import itertools
import random
from array import array
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.parameter import is_lazy

from hookedu.hooks.reach import restored
from tests.hooks.capture_models import hook_tables


def inference_tensor() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(3)


ROWS = [torch.ones(2), torch.ones(3)]
KINDS = {
    "dense": lambda: torch.arange(3.0),
    "NaN": lambda: torch.tensor([float("nan"), -0.0, 1.0]),
    "empty": lambda: torch.ones(0),
    "expanded": lambda: torch.ones(1).expand(3),
    "view": lambda: torch.ones(4, 4)[1:, ::2],
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "8 bits": lambda: torch.ones(3, dtype=torch.float8_e4m3fn),
    "meta": lambda: torch.ones(3, device="meta"),
    "COO": lambda: torch.eye(3).to_sparse(),
    "CSR": lambda: torch.eye(3).to_sparse_csr(),
    "BSR": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "mkldnn": lambda: torch.ones(3).to_mkldnn(),
    "inference": inference_tensor,
    "nested": lambda: torch.nested.nested_tensor(ROWS),
    "jagged": lambda: torch.nested.nested_tensor(ROWS, layout=torch.jagged),
    "requires grad": lambda: torch.ones(3, requires_grad=True),
    "lazy": nn.UninitializedBuffer,
}


class Odd(nn.Module):
    """Holds tensors in every place where a module can."""

    def __init__(self, buffer: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.lazy = nn.Parameter(torch.ones(2, 2)), nn.UninitializedParameter()
        self.weight.grad = torch.full((2, 2), 3.0)
        self.register_buffer("buffer", buffer)
        self.plain, self.steps = torch.ones(2), 0
        self.cache = {"keys": [torch.ones(2)], "seen": {1}, "last": deque([1], maxlen=2)}
        self.inside = nn.Sequential(nn.LazyLinear(2), nn.BatchNorm1d(2))
        self.handle = self.register_forward_hook(print)


class Other(Odd):
    """Another class for the same module."""


# What a forward pass, or a hook of it, may do to its module; t is the odd buffer.
EDITS = {
    "mul_": lambda m, t: t.mul_(0),
    "add_": lambda m, t: t.add_(t),
    "fill_": lambda m, t: t.fill_(3),
    "zero_": lambda m, t: t.zero_(),
    "copy_": lambda m, t: t.copy_(torch.zeros_like(t)),
    "t_": lambda m, t: t.t_(),
    "resize_": lambda m, t: t.resize_(7, 2),
    "set_": lambda m, t: t.set_(torch.ones(9)),
    "other data": lambda m, t: setattr(t, "data", torch.ones(5)),
    "other dtype": lambda m, t: setattr(t, "data", torch.ones(3, dtype=torch.int8)),
    "more entries": lambda m, t: t.add_(torch.ones(3, 3).to_sparse()),
    "keeps a graph": lambda m, t: (
        t._is_view() or t.mul_(m.weight.sum())
    ),  # autograd detaches no view in place
    "requires_grad_": lambda m, t: t.requires_grad_(not t.requires_grad),
    "gradient": lambda m, t: setattr(t, "grad", torch.zeros_like(t)),
    "backward": lambda m, t: t.sum().backward(),
    "materialize": lambda m, t: t.materialize((2, 2)),
    "another buffer": lambda m, t: setattr(m, "buffer", torch.ones(1)),
    "no buffer": lambda m, t: delattr(m, "buffer"),
    "one more buffer": lambda m, t: m.register_buffer("more", torch.ones(1)),
    "weight in place": lambda m, t: m.weight.data.renorm_(2, 0, 0.1),
    "weight anew": lambda m, t: setattr(m.weight, "data", torch.zeros(3)),
    "weight frozen": lambda m, t: m.weight.requires_grad_(False),
    "weight's gradient": lambda m, t: m.weight.grad.mul_(2),
    "no gradient": lambda m, t: setattr(m.weight, "grad", None),
    "one more weight": lambda m, t: setattr(m, "more_weight", nn.Parameter(torch.ones(1))),
    "no weight": lambda m, t: delattr(m, "weight"),
    "lazy weight": lambda m, t: m.lazy.materialize((3,)),
    "lazy layer": lambda m, t: m.inside(torch.ones(3, 4)),
    "plain tensor": lambda m, t: m.plain.add_(1),
    "counter": lambda m, t: setattr(m, "steps", m.steps + 1),
    "one more attribute": lambda m, t: setattr(m, "output", torch.ones(1)),
    "cache": lambda m, t: m.cache["keys"].append(t),
    "values in the cache": lambda m, t: m.cache["keys"][0].add_(1),
    "one more key": lambda m, t: m.cache.update(new=1),
    "set": lambda m, t: m.cache["seen"].add(2),
    "deque": lambda m, t: m.cache["last"].extend([2, 3]),
    "one more layer": lambda m, t: setattr(m, "head", nn.Linear(2, 2)),
    "another layer": lambda m, t: setattr(m, "inside", nn.Identity()),
    "mode": lambda m, t: m.eval(),
    "class": lambda m, t: setattr(m, "__class__", Other),
    "one more hook": lambda m, t: m.register_forward_pre_hook(print),
    "one hook less": lambda m, t: m.handle.remove(),
}


def bits(tensor: torch.Tensor) -> object:
    """Return everything that a file would say of a tensor."""
    if is_lazy(tensor) or tensor.is_mkldnn:  # torch.save has no format for these
        return None if is_lazy(tensor) else tensor.to_dense().tolist()
    file = io.BytesIO()
    torch.save(tensor.detach(), file)
    return file.getvalue()


def seen(value: object) -> object:
    """Return a value of plain objects that equals another one only if nothing has changed."""
    if isinstance(value, torch.Tensor):
        inside = (bits(value), value.is_leaf, value.requires_grad)
        gradient = value.grad if value.is_leaf else None
        return id(value), type(value), inside, None if gradient is None else seen(gradient)
    if isinstance(value, dict):
        return id(value), [(key, seen(item)) for key, item in value.items()]
    if isinstance(value, list | set | deque):
        return id(value), [seen(item) for item in value]
    return value if isinstance(value, int | str | bool | None) else id(value)


def picture(model: nn.Module) -> list[object]:
    modules = list(model.modules())
    return [[(id(m), type(m), seen(vars(m))) for m in modules], hook_tables(model)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(deadline=None)
@given(kind=st.sampled_from(list(KINDS)), edits=st.lists(st.sampled_from(list(EDITS)), max_size=6))
@example(kind="meta", edits=[])
@example(kind="COO", edits=["more entries"])
@example(kind="inference", edits=["mul_"])
@example(kind="mkldnn", edits=["zero_"])
@example(kind="dense", edits=["keeps a graph"])
@example(kind="lazy", edits=["materialize", "lazy weight", "lazy layer"])
def test_whatever_a_run_does_to_a_model_is_undone(kind, edits):
    model = Odd(KINDS[kind]())
    buffer, before = model.buffer, picture(model)
    with restored(model), torch.inference_mode() if kind == "inference" else torch.enable_grad():
        for edit in edits:
            try:
                EDITS[edit](model, buffer)
            except Exception:  # not every edit suits every kind, nor follows every other
                continue
    assert picture(model) == before


def test_each_edit_changes_some_model_and_is_undone():
    """So that the property above is about something."""
    effective = set()
    for edit, kind in itertools.product(EDITS, KINDS):
        if edit in effective:
            continue
        model = Odd(KINDS[kind]())
        before = picture(model)
        with restored(model), contextlib.suppress(Exception):
            EDITS[edit](model, model.buffer)
            effective |= {edit} if picture(model) != before else set()
        assert picture(model) == before, (kind, edit)
    assert effective == {*EDITS}


def test_an_unchanged_tensor_is_not_touched():
    """A graph that needs it can still run backward, and memory that is read-only is not written to."""
    model = nn.BatchNorm1d(3).eval()
    loss = model(torch.randn(4, 3, requires_grad=True)).sum()
    versions = [t._version for t in (*model.parameters(), *model.buffers())]
    with restored(model):
        model(torch.randn(4, 3))
    assert versions == [t._version for t in (*model.parameters(), *model.buffers())]
    loss.backward()


def test_a_graph_from_before_that_has_saved_a_buffer_still_runs_backward():
    """Values and version are those that the graph has seen, so autograd has nothing to refuse."""
    model, x = nn.BatchNorm1d(3), torch.ones(3, requires_grad=True)
    loss = (x * model.running_var).sum()
    with restored(model):
        model.reset_running_stats()
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1, 1]


def test_what_cannot_be_put_back_is_raised_when_all_else_is_back():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Identity(), nn.BatchNorm1d(3))
    Refuses = type("Refuses", (nn.Identity,), {"__class__": property(lambda self: Refuses)})
    with pytest.raises(AttributeError), restored(model):
        model[1].__class__ = Refuses
        model(torch.randn(4, 3))
    assert [model[0].num_batches_tracked, model[2].num_batches_tracked] == [0, 0]


def test_tensors_that_share_memory_still_do():
    model = nn.Module()
    model.register_buffer("whole", torch.zeros(4))
    model.register_buffer("part", model.whole[:2])
    with restored(model):
        model.part.data = torch.ones(9)
        model.whole.add_(1)
    model.whole[0] = 7
    assert model.part.tolist() == [7, 0] and model.whole.tolist() == [7, 0, 0, 0]


def test_large_weights_are_not_copied(monkeypatch):
    """They would not fit twice on a GPU; everything else of the model is still put back."""
    monkeypatch.setattr("hookedu.hooks.state._MOST_WEIGHTS", 8)
    model = Odd(torch.zeros(2))
    with restored(model):
        for tensor in (model.weight.data, model.buffer, model.weight.grad):
            tensor.add_(1)
    assert model.weight.sum() == 8 and model.buffer.sum() == 0 and model.weight.grad.sum() == 12


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 1001])
def test_a_change_of_any_byte_is_undone(size):
    """The values are compared in words of several bytes, which need not fill the memory."""
    model = nn.Module()
    model.register_buffer("bytes", torch.zeros(size, dtype=torch.uint8))
    for place in {*range(min(size, 20)), *range(max(size - 20, 0), size)}:
        with restored(model):
            model.bytes[place] = 1
        assert not model.bytes.any(), place


def test_arrays_and_generators_of_random_numbers_among_the_attributes():
    model = nn.Module()
    model.table, model.bytes, model.row = np.zeros(2), bytearray(b"ab"), array("d", [1.0])
    model.python, model.torch, model.numpy = random.Random(3), torch.Generator(), np.random.default_rng(3)
    model.inside = {"tables": [np.array([{"a": 1}], dtype=object)]}

    def draw():
        return model.python.random(), torch.rand(1, generator=model.torch).item(), model.numpy.random()

    with restored(model):
        model.table += 1
        model.bytes += b"c"
        model.row.append(2.0)
        model.inside["tables"][0][0]["a"] = 2
        first = draw()
    assert model.table.tolist() == [0, 0] and model.bytes == b"ab" and model.row.tolist() == [1]
    assert model.inside["tables"][0][0] == {"a": 1}
    assert draw() == first


def test_a_scripted_part():
    model = nn.Sequential(nn.Linear(2, 2), torch.jit.script(nn.Linear(2, 2)))
    weight = model[1].weight.detach().clone()
    with restored(model), torch.no_grad():
        model[1].weight.add_(1)
    assert torch.equal(model[1].weight, weight)


def test_parameters_that_forward_replaces():
    class Replaces(nn.Linear):
        def forward(self, x):
            self.weight = nn.Parameter(self.weight * 2)
            self.bias = nn.Parameter(torch.ones(2))
            return super().forward(x)

    model = Replaces(2, 2, bias=False)
    weight = model.weight
    with restored(model):
        model(torch.ones(1, 2))
    assert model.weight is weight and model.bias is None
