"""record() on what its authors never saw: cases 32 to 35 of hookedu/hooks/CASES.md."""

import gc
import warnings
from collections import UserDict
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from hookedu import list_hooks, record, remove_hooks, timeline
from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import dense_parts
from tests.hooks.capture_models import Passes, Returns, net


def recorded(model, *inputs, **options):
    with record(model, "", inputs=True):
        model(*inputs, **options)


def stance():
    return str(torch._dynamo.eval_frame._stance)


@pytest.fixture
def compiled():
    """Yield a compiled model; afterwards the stance has to be what it was."""
    before = stance()
    model = torch.compile(net(), backend="eager")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*compiled")
        yield model
    assert stance() == before


class TestCase32SeveralRecordersOfACompiledModel:
    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_the_last_one_gives_the_stance_back(self, compiled, order):
        before, recorders = stance(), [record(compiled, name) for name in ("0", "2")]
        for n in order:
            assert stance() != before
            compiled(torch.ones(1, 3))
            recorders[n].close()
        assert stance() == before

    def test_the_second_records_after_the_first_has_gone(self, compiled):
        first, second = record(compiled, "0"), record(compiled, "2")
        first.close()
        compiled(torch.ones(1, 3))
        assert len(second["2"].calls) == 1
        second.close()

    def test_remove_hooks_gives_it_back(self, compiled):
        before, rec = stance(), record(compiled, nn.Linear, inputs=True)
        assert len(remove_hooks(compiled, owner="hookedu", kind="forward")) == 2 and stance() != before
        assert len(remove_hooks(compiled, owner="hookedu")) == 2 and stance() == before
        rec.close()
        assert stance() == before

    def test_a_forgotten_recorder_gives_it_back_with_its_model(self):
        before = stance()

        def forget():
            model = torch.compile(net(), backend="eager")
            with pytest.warns(UserWarning, match="compiled"):
                record(model, "0")

        forget()
        gc.collect()
        assert stance() == before

    def test_a_stance_set_meanwhile_is_left_alone(self, compiled):
        rec = record(compiled, "0")
        with torch.compiler.set_stance("eager_on_recompile"):
            inside = stance()
            late = record(compiled, "2")
            assert stance() != inside
            late.close()
            rec.close()
            assert stance() == inside


class ReturnsALeaf(nn.Module):
    """A layer that returns its parameter, as nn.Dropout on a parameter does in eval mode."""

    def __init__(self):
        super().__init__()
        self.table, self.drop = nn.Parameter(torch.ones(3)), nn.Dropout(0.5)

    def forward(self, x):
        return (self.drop(self.table) * x).sum()


class TestCase33ALayerThatReturnsALeaf:
    def test_its_hook_ends_with_the_block_and_nothing_grows(self):
        model = ReturnsALeaf().eval()
        with record(model, "drop", gradients=True) as rec:
            model(torch.arange(3.0)).backward()
        for _ in range(3):
            model(10 + torch.arange(3.0)).backward()
        assert not model.table._backward_hooks
        assert rec["drop"].gradient.tolist() == [0, 1, 2] and len(rec.events) == 2

    def test_within_a_recorder_each_call_keeps_the_gradient_of_its_own_step(self):
        model = ReturnsALeaf().eval()
        rec = record(model, "drop", gradients=True)
        for step in range(4):
            model(torch.full((3,), float(step))).backward()
        assert [call.gradient.tolist() for call in rec["drop"].calls] == [[step] * 3 for step in range(4)]
        assert [call.n_backward for call in rec["drop"].calls] == [1] * 4
        assert len(model.table._backward_hooks) == 1
        rec.close()
        assert not model.table._backward_hooks

    def test_two_calls_of_one_pass_and_a_second_backward(self):
        model = ReturnsALeaf().eval()
        with record(model, "drop", gradients=True) as rec:
            loss = model(torch.ones(3)) + model(torch.ones(3))
            loss.backward(retain_graph=True)
            loss.backward()
        assert [(call.gradient.tolist(), call.n_backward) for call in rec["drop"].calls] == [
            ([2, 2, 2], 2)
        ] * 2

    def test_a_backward_after_the_block_is_not_seen_and_the_error_says_why(self):
        model = ReturnsALeaf().eval()
        with record(model, "drop", gradients=True) as rec:
            loss = model(torch.ones(3))
        loss.backward()
        with pytest.raises(RuntimeError, match="leaf"):
            _ = rec["drop"].gradient


class Cache:
    """A cache as language models have it: a plain object that grows with each step."""

    def __init__(self):
        self.layers = []

    def add(self, key):
        self.layers.append(key)
        self.layers[0].mul_(2)
        return self


class Slot:
    """A part of a cache, which gets its tensor in the first step."""

    def __init__(self):
        self.keys = None


class Slots:
    """A cache that has a place for each layer, all empty at first."""

    def __init__(self):
        self.slots, self.n = (Slot(), Slot()), 0

    def add(self, key):
        self.slots[self.n].keys = key
        self.n += 1
        return self


class NoGradient(torch.autograd.Function):
    """An operation that has no gradient for its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None


class Strict(tuple):
    """A tuple that cannot be made from items alone."""

    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


class Refuses(dict):
    """A dict that refuses items after it has been made."""

    def __setitem__(self, key, value):
        raise TypeError("frozen")


class Borg:
    """Objects that share one state: a copy of one is no copy."""

    state: dict = {}  # noqa: RUF012

    def __new__(cls):
        one = super().__new__(cls)
        one.__dict__ = cls.state
        return one


class Uncopyable:
    """An object that fails when somebody copies it."""

    def __init__(self):
        self.value = torch.ones(2)

    def __copy__(self):
        raise RuntimeError("one only")

    __deepcopy__ = __reduce_ex__ = __copy__


@dataclass(frozen=True)
class Frozen:
    value: torch.Tensor


def cyclic():
    box = [torch.ones(1)]
    box.append(box)
    return {"box": box}


def borg():
    one = Borg()
    one.value = torch.ones(2)
    return one


ODD = {
    "a tuple with its own __new__": lambda: Strict(torch.ones(2), 3),
    "a dict that refuses items": lambda: Refuses(a=torch.ones(2)),
    "a container that holds itself": cyclic,
    "objects that share their state": borg,
    "an object that nobody can copy": Uncopyable,
    "a frozen dataclass": lambda: Frozen(torch.ones(2)),
    "a class": lambda: Cache,
    "a module": lambda: nn.Linear(2, 2),
    "a generator": lambda: (x for x in [torch.ones(2)]),
    "a key that cannot be printed": lambda: {
        type("Key", (), {"__repr__": lambda self: 1 / 0})(): torch.ones(1)
    },
    "nested tensors": lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]),
    "jagged tensors": lambda: torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged
    ),
    "mkldnn": lambda: torch.ones(2, 3).to_mkldnn(),
    "meta": lambda: torch.ones(2, 3, device="meta"),
    "complex": lambda: torch.ones(2, dtype=torch.complex64),
    "sparse": lambda: torch.eye(3).to_sparse(),
}


class TestCase34WhatCannotBeCopiedOrWalked:
    @pytest.mark.parametrize("kind", ODD)
    @pytest.mark.parametrize("outputs", [True, False])
    def test_the_forward_never_raises_and_the_recording_can_be_read(self, kind, outputs):
        value, model = ODD[kind](), nn.Sequential(Passes(), Passes())
        with record(model, Passes, outputs=outputs, inputs=True, gradients=True) as rec:
            assert model(value) is value
        assert "Passes" in repr(rec) and rec.nbytes >= 0
        rec["1"].calls[0].stats("input")
        assert type(rec["1"].input[0]) is type(value)

    # The storage of a jagged tensor is the wrapper's own, so that it tells nothing of what the two share.
    @pytest.mark.parametrize(
        "kind", ["nested tensors", "jagged tensors", "mkldnn", "meta", "complex", "sparse"]
    )
    def test_nor_does_it_with_keep(self, kind):
        value, model = ODD[kind](), Passes()
        with record(model, "", keep=lambda tensor: tensor) as rec:
            assert model(value) is value
        kept, given = (
            {part.untyped_storage()._cdata for part in dense_parts(tensor)}
            for tensor in (rec[""].activation, value)
        )
        assert not kept & given and "Passes" in repr(rec)

    @pytest.mark.parametrize(
        "transform", [torch.vmap, torch.func.grad, lambda f: lambda x: torch.func.jvp(f, (x,), (x,))]
    )
    def test_inside_of_transforms(self, transform):
        model = nn.Sequential(nn.Tanh(), nn.Identity())

        def run(x):
            out = model(x).sum()
            assert "Tanh" in repr(rec)
            return out

        with record(model, nn.Module, inputs=True) as rec:
            transform(run)(torch.ones(4, 3) if transform is torch.vmap else torch.ones(3))
        assert "Tanh" in repr(rec)

    def test_a_cache_is_kept_as_it_was_at_each_call(self):
        class Step(nn.Module):
            def forward(self, x, cache):
                return cache.add(x.clone())

        model, cache = Step(), Cache()
        with record(model, "", inputs=True) as rec:
            for n in range(3):
                model(torch.full((2,), 1.0 + n), cache=cache)
        before = [call.kwargs["cache"].layers for call in rec[""].calls]
        after = [call.activation.layers for call in rec[""].calls]
        assert [[t.tolist()[0] for t in layers] for layers in before] == [[], [2], [4, 2]]
        assert [[t.tolist()[0] for t in layers] for layers in after] == [[2], [4, 2], [8, 2, 3]]
        assert rec.nbytes == 8 * (3 + 1 + 2 + 1 + 2 + 3), "the tensors in a cache count, too"

    def test_so_is_one_whose_places_are_filled_later(self):
        model, cache = nn.Sequential(Passes()), Slots()
        with record(model, "", inputs=True) as rec:
            for n in range(2):
                model(cache.add(torch.full((2,), float(n))))
        kept = [[slot.keys for slot in call.activation.slots] for call in rec[""].calls]
        assert [[None if t is None else t[0].item() for t in keys] for keys in kept] == [[0, None], [0, 1]]
        assert [call.input[0].n for call in rec[""].calls] == [1, 2]

    @pytest.mark.parametrize("value", [torch.Size([2, 3]), (1, ("a", None))])
    def test_what_cannot_change_needs_no_copy(self, value):
        with record(Passes(), "") as rec:
            rec._named[""](value)
        assert rec[""].activation is value and "could not be copied" not in str(rec.summary())

    def test_what_is_kept_of_an_object_holds_no_graph(self):
        x = torch.ones(2, requires_grad=True)
        with record(Passes(), "") as rec:
            rec._named[""](UserDict(a=x * 2))
        assert not rec[""].activation["a"].requires_grad

    @pytest.mark.parametrize("look", [recorded, timeline], ids=["record", "timeline"])
    def test_what_an_argument_owns_is_released_once(self, look):
        released = []

        class Buffer:
            def __init__(self) -> None:
                self.memory = None

            def __del__(self) -> None:
                released.append(self)

        buffer = Buffer()
        look(Passes(), torch.ones(1), buffer=buffer)
        gc.collect()
        assert not released and buffer.memory is None

    def test_what_could_not_be_copied_is_reported(self):
        model = nn.Sequential(Passes())
        with record(model, "0") as rec:
            model(Uncopyable())
        assert "could not be copied" in str(rec.summary())

    def test_a_device_that_cannot_be_used_raises_before_any_hook(self):
        model = net()
        device = "cuda:99" if torch.cuda.is_available() else "cuda"
        with pytest.raises(RuntimeError):
            record(model, "0", device=device)
        assert not list_hooks(model)


class TestAGradientThatNeverComes:
    """PyTorch calls a tensor hook with None where a later function has no gradient for the tensor."""

    @pytest.mark.parametrize("layer", [nn.Linear, nn.Identity])  # Identity returns its input, a leaf
    def test_backward_runs_as_without_a_recorder(self, layer):
        x, model = torch.ones(3, requires_grad=True), layer(3, 3)
        with record(model, "", gradients=True) as rec:
            (NoGradient.apply(model(x)) + 2 * x.detach().requires_grad_()).sum().backward()
        assert x.grad is None and rec[""].calls[0].n_backward == 0
        with pytest.raises(RuntimeError, match="no gradient"):
            _ = rec[""].gradient

    def test_of_several_outputs_those_that_are_used_have_one(self):
        model = Returns(torch.unbind)
        with record(model, "", gradients=True) as rec:
            model(torch.ones(2, 3))[0].sum().backward()
        used, unused = rec[""].gradient
        assert used.tolist() == [1, 1, 1] and unused is None


def test_a_checkpointed_call_is_not_said_to_have_raised():
    layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with record(layer, "", inputs=True) as rec:
        checkpoint(layer, torch.ones(1, 3, requires_grad=True), use_reentrant=False).sum().backward()
    first, again = rec[""].calls  # what is recomputed ends as soon as backward has what it needs
    assert first.activation.shape == (1, 3) and "did not finish" in repr(again)
    with pytest.raises(RuntimeError, match="checkpointing"):
        _ = again.activation


def test_weights_that_are_read_are_not_called_unused():
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(2, 2)

        def forward(self, x):
            return nn.functional.linear(x, self.qkv.weight)

    model = Reads()
    with record(model, "qkv") as rec:
        model(torch.ones(1, 2))
    assert "only reads its weights" in rec.missed["qkv"].en


@settings(deadline=None)
@given(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=2, max_size=50))
def test_a_nan_changes_no_statistics_of_the_other_elements(numbers):
    """Without it they are computed in another way, which is quicker."""
    alone, beside = Stats(torch.tensor(numbers)), Stats(torch.tensor([*numbers, torch.nan]))
    assert (beside.count, beside.nan, beside.min, beside.max) == (len(numbers) + 1, 1, alone.min, alone.max)
    assert beside.mean == pytest.approx(alone.mean, rel=1e-6, abs=1e-6 * max(map(abs, numbers)))
    assert beside.zeros * beside.count == pytest.approx(alone.zeros * alone.count)
    if not alone.std or 1e-18 < alone.std < 1e18:  # the squares of others are no float32
        assert beside.std == pytest.approx(alone.std, rel=1e-5, abs=1e-6 * max(map(abs, numbers)))
