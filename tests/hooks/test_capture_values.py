"""record() on values and tensors that few models have: case 39 and more of case 34 of hookedu/hooks/CASES.md."""

import functools
from array import array
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.masked import masked_tensor

from hookedu import diagnose, record, timeline
from tests.hooks.capture_models import Passes, net


class Step:
    """An object without a `__dict__`."""

    __slots__ = ("empty", "keys", "n")

    def __init__(self, keys):
        self.keys, self.n = keys, 1


@dataclass(slots=True)
class Cache:
    steps: list


HOLDERS = {
    "slots": (Step, lambda kept: kept.keys),
    "slots of slots": (lambda tensor: Cache([Step(tensor)]), lambda kept: kept.steps[0].keys),
    "a deque": (lambda tensor: deque([tensor], maxlen=3), lambda kept: kept[0]),
}


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize("option", ["outputs", "inputs"])
def test_what_holds_tensors_is_copied_with_them(kind, option):
    make, read = HOLDERS[kind]
    tensor = torch.ones(2, requires_grad=True) * 3
    model, value = Passes(), make(tensor)
    with record(model, "", outputs=option == "outputs", inputs=option == "inputs", gradients=True) as rec:
        assert model(value) is value
        tensor.sum().backward()
    tensor.detach().zero_()
    kept = rec[""].activation if option == "outputs" else rec[""].input[0]
    assert type(kept) is type(value) and kept is not value
    assert read(kept).tolist() == [3, 3] and not read(kept).requires_grad
    assert read(rec[""].gradient).tolist() == [1, 1] and rec.nbytes == 8 + 8
    assert "could not be copied" not in str(rec.summary())


ARRAYS = {
    "NumPy": lambda: np.ones((2, 3)),
    "Fortran": lambda: np.asfortranarray(np.ones((2, 3))),
    "masked": lambda: np.ma.array(np.ones((2, 3)), mask=np.zeros((2, 3))),
    "no dimensions": lambda: np.array(1.0),
    "bytes": lambda: bytearray(b"\1\1"),
    "Python": lambda: array("d", [1.0, 1.0]),
}


def overwrite(numbers):
    """Change an array, and of a masked one also the mask."""
    numbers[... if isinstance(numbers, np.ndarray) else 0] = 0
    if isinstance(numbers, np.ma.MaskedArray):
        numbers.mask[:] = True


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize(
    "around", [lambda a: a, lambda a: (torch.ones(1), [a]), lambda a: SimpleNamespace(a=a)]
)
@pytest.mark.parametrize("option", ["outputs", "inputs"])
def test_arrays_are_copied_as_tensors_are(kind, around, option):
    model, numbers = Passes(), ARRAYS[kind]()
    value, before = around(numbers), repr(around(ARRAYS[kind]()))
    with record(model, "", outputs=option == "outputs", inputs=option == "inputs") as rec:
        assert model(value) is value
    overwrite(numbers)
    kept = rec[""].activation if option == "outputs" else rec[""].input[0]
    assert repr(kept) == before != repr(value) and type(kept) is type(value)
    assert "could not be copied" not in str(rec.summary())


def test_arrays_in_a_timeline_in_an_alias_and_of_objects():
    model, numbers = Passes(), np.ones(2)
    with record(model, "", copy=False) as rec:
        model(numbers)
    assert rec[""].activation is numbers
    events = timeline(model, numbers, values=True)
    numbers[:] = 0
    assert [event.value for event in events][-1].tolist() == [1, 1]
    with record(model, "") as rec:
        model(np.array([torch.ones(1), None], dtype=object))
    assert "could not be copied" in str(rec.summary())


def test_a_caller_s_deque_and_slots_stay_as_they_are():
    class Grows(nn.Module):
        def forward(self, x, cache, step):
            cache.append(x)
            step.keys.add_(1)
            return x * 2

    cache, step = deque([torch.ones(2)]), Step(torch.zeros(2))
    x = torch.ones(2, requires_grad=True)
    timeline(Grows(), x, cache, step)
    diagnose(Grows(), x, cache, step)
    assert len(cache) == 1 and step.keys.tolist() == [0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda tensor: {tensor},
        lambda tensor: (one for one in [tensor]),
        lambda tensor: iter([tensor]),
        lambda tensor: {"a": tensor}.values(),
        lambda tensor: functools.partial(torch.add, tensor),
        lambda tensor: ValueError(tensor),
    ],
)
def test_of_what_is_not_gone_into_it_is_reported(make):
    model, value = nn.Sequential(Passes()), make(torch.ones(2))
    with record(model, "0") as rec:
        assert model(value) is value
    assert rec["0"].activation is value and "could not be copied" in str(rec.summary())


@pytest.mark.parametrize("value", ["text", 3, {3, 4}, iter([1, 2]), torch.Size([1]), nn.Linear(1, 1), print])
def test_what_holds_no_tensor_is_not_worth_a_word(value):
    model = nn.Sequential(Passes())
    with record(model, "0") as rec:
        model(value)
    assert "could not be copied" not in str(rec.summary())


class Strict(torch.Tensor):
    """A tensor that refuses what a recorder does with it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("detach", "clone", "numel", "to"):
            raise TypeError("refused")
        return super().__torch_function__(function, types, args, kwargs or {})


TENSORS = {
    "float4": lambda: torch.zeros(2, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "on meta": lambda: torch.ones(2, 4, device="meta"),
    "mkldnn": lambda: torch.ones(2, 4).to_mkldnn(),
    "masked": lambda: masked_tensor(torch.ones(2, 4), torch.eye(2, 4).bool()),
    "a subclass that refuses": lambda: torch.ones(2, 4).as_subclass(Strict),
    "fake": lambda: torch.ones(2, 4),
}


@pytest.mark.filterwarnings("ignore")  # masked tensors are a prototype, and values past max_bytes are dropped
@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize(
    "options", [{}, {"copy": False}, {"device": "cpu"}, {"keep": "stats"}, {"max_bytes": 1}]
)
def test_no_tensor_makes_the_forward_raise_or_the_recording_unreadable(kind, options):
    with FakeTensorMode() if kind == "fake" else nullcontext():
        value, model = TENSORS[kind](), nn.Sequential(Passes(), nn.Identity())
        with record(model, nn.Module, inputs=True, gradients=True, **options) as rec:
            assert model(value) is value
        assert "2×4" in repr(rec) and rec.nbytes >= 0
        assert rec["0"].stats().shape == (2, 4) and "2×4" in repr(rec["0"].stats())


def test_what_the_user_s_own_function_raises_passes():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(ZeroDivisionError), record(model, "0", keep=lambda tensor: 1 / 0):
        model(torch.ones(1, 2))


def test_gradients_in_batches_of_the_older_vmap():
    model, x = net(), torch.ones(1, 3, requires_grad=True)
    with record(model, "*", gradients=True) as rec:
        torch.autograd.grad(model(x), x, torch.eye(2).view(2, 1, 2), is_grads_batched=True)
    assert rec.nbytes == 4 * (4 + 4 + 2) and "Linear" in str(rec.summary())


class EveryLayer(torch.fx.Tracer):
    """Goes into the layers of PyTorch as well."""

    def is_leaf_module(self, m, module_qualified_name):
        return False


TRACERS = {
    "torch.fx": lambda model, x: EveryLayer().trace(model),
    "make_fx": lambda model, x: make_fx(model)(x).graph,
    "make_fx of operators": lambda model, x: make_fx(model, pre_dispatch=True)(x).graph,
    "torch.export": lambda model, x: torch.export.export(model, (x,)).graph,
    "torch.export, strict": lambda model, x: torch.export.export(model, (x,), strict=True).graph,
    "torch.jit": lambda model, x: torch.jit.trace(model, x, check_trace=False).code,
}
OPTIONS = [{}, {"inputs": True, "gradients": True}, {"keep": "stats"}, {"copy": False}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestCase39ATracerRunsTheModel:
    @pytest.mark.parametrize("how", TRACERS)
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_its_graph_is_the_one_without_a_recorder(self, how, options):
        trace, model, x = TRACERS[how], net(), torch.ones(2, 3)
        expected = str(trace(model, x))
        with record(model, "*", **options) as rec:
            assert str(trace(model, x)) == expected
            if "strict" not in how:  # there not even a note of it remains
                assert "only traced" in rec.missed["0"].en
                with pytest.raises(RuntimeError, match="only traced"):
                    _ = rec["0"].activation
            model(x)
        assert not rec.missed and len(rec["0"].calls) == 1
        assert "calls of a tracer left out" in str(rec["0"]) or "strict" in how
