"""A run for looking on leaves the objects that a model holds as they were: caches, counters, optimizers."""

import functools
import itertools
import math
from collections import Counter, deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import pytest
import torch
from torch import nn

from hookedu import LayerPicker, diagnose, timeline
from hookedu.hooks import reach
from hookedu.hooks.reach import Reach, restored


def silent(module, args, output):
    pass


def diagnosed(model, *inputs):
    handle = model.register_forward_hook(silent)
    diagnose(model, *inputs)
    handle.remove()


LOOKS = pytest.mark.parametrize(
    "look", [timeline, diagnosed, LayerPicker], ids=["timeline", "diagnose", "picker"]
)


class Cache:
    """The keys and values of the tokens so far."""

    __slots__ = ("keys", "length", "values")

    def __init__(self) -> None:
        self.keys, self.values, self.length = torch.zeros(1, 0, 8), torch.zeros(1, 0, 8), 0

    def update(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys, self.values = torch.cat([self.keys, key], 1), torch.cat([self.values, value], 1)
        self.length += key.shape[1]
        return self.keys, self.values


class Attention(nn.Module):
    """Reads one token after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv, self.out, self.cache = nn.Linear(8, 24), nn.Linear(8, 8), Cache()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.to_qkv(x).chunk(3, -1)
        with torch.no_grad():
            keys, values = self.cache.update(key, value)
        weights = (query @ keys.mT / math.sqrt(8)).softmax(-1)
        return self.out(weights @ values)


@LOOKS
def test_the_cache_of_an_attention_layer(look):
    model = nn.Sequential(Attention(), Attention())
    before = model(torch.randn(1, 3, 8))
    caches = [layer.cache for layer in model]
    parts = [(cache.keys, cache.values, cache.keys.clone()) for cache in caches]
    look(model, torch.randn(1, 1, 8))
    for layer, cache, (keys, values, copy) in zip(model, caches, parts, strict=True):
        assert layer.cache is cache and cache.length == 3
        assert cache.keys is keys and cache.values is values and keys.equal(copy)
    assert before.shape == (1, 3, 8)


@LOOKS
def test_counters_queues_and_numbers_wherever_an_object_holds_them(look):
    @dataclass
    class Statistics:
        counts: dict = field(default_factory=lambda: {"calls": 0})
        last: deque = field(default_factory=lambda: deque([1.0], maxlen=2))
        kinds: Counter = field(default_factory=Counter)
        ring: np.ndarray = field(default_factory=lambda: np.zeros(2))
        total: torch.Tensor = field(default_factory=lambda: torch.zeros(2))
        inside: tuple = field(default_factory=lambda: (SimpleNamespace(seen=[]),))

    class Counting(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.statistics = Statistics()

        def forward(self, x):
            y, its = super().forward(x), self.statistics
            its.counts["calls"] += 1
            its.last.append(2.0)
            its.last.append(3.0)
            its.kinds[type(x)] += 1
            its.ring += 1
            its.total += 1
            its.inside[0].seen.append(x)
            its.new = y
            return y

    model = nn.Sequential(Counting(), nn.ReLU())
    its = model[0].statistics
    look(model, torch.ones(1, 2))
    assert its.counts == {"calls": 0} and its.last == deque([1.0]) and not its.kinds
    assert its.ring.tolist() == [0, 0] and its.total.tolist() == [0, 0]
    assert its.inside[0].seen == [] and not hasattr(its, "new")


@LOOKS
def test_the_optimizer_of_a_model_that_trains_itself(look):
    class Trains(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)
            self.optimizer = torch.optim.Adam(self.layer.parameters())

        def forward(self, x):
            with torch.enable_grad():
                self.layer(x.detach()).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            return self.layer(x.detach())

    model = Trains()
    model(torch.ones(1, 2))
    (state, *_), weight = model.optimizer.state.values(), model.layer.weight.clone()
    before = {name: value.clone() for name, value in state.items()}
    look(model, torch.ones(1, 2))
    (after, *_) = model.optimizer.state.values()
    assert after is state and all(before[name].equal(after[name]) for name in before)
    assert before["step"] == 1 and weight.equal(model.layer.weight)


def test_what_the_caller_passes_is_put_back_too():
    class Fills(nn.Linear):
        def forward(self, x, ring, seen):
            ring += 1
            seen.add("x")
            return super().forward(x)

    ring, seen = np.zeros(2), set()
    timeline(Fills(2, 2), torch.ones(1, 2), ring, seen=seen)
    assert ring.tolist() == [0, 0] and seen == set()


class Numbered(nn.Linear):
    """Counts with an iterator, which cannot be turned back."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.numbers = SimpleNamespace(calls=itertools.count())

    def forward(self, x):
        next(self.numbers.calls)
        return super().forward(x)


def test_what_cannot_be_put_back_is_reported():
    note = timeline(Numbered(), torch.ones(1, 2)).note
    assert note is not None and note.en.endswith("if the run has changed it: count")
    assert timeline(nn.Linear(2, 2), torch.ones(1, 2)).note is None


def test_an_object_that_refuses_is_reported_and_does_not_raise():
    class Sealed:
        __slots__ = ("count",)

        def __init__(self) -> None:
            object.__setattr__(self, "count", 0)

        def __setattr__(self, name, value):
            raise AttributeError(name)

    class Counts(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.sealed = Sealed()

        def forward(self, x):
            object.__setattr__(self.sealed, "count", 1)
            return super().forward(x)

    note = timeline(Counts(), torch.ones(1, 2)).note
    assert note is not None and "Sealed" in note.en


def test_however_much_the_objects_of_a_model_hold_the_model_itself_is_put_back(monkeypatch):
    monkeypatch.setattr(reach, "_MOST_OBJECTS", 100)
    model = nn.Sequential(*(nn.BatchNorm1d(2) for _ in range(30)))
    model[0].data = SimpleNamespace(rows=[SimpleNamespace(row=[n]) for n in range(200)])
    with restored(model) as unrestorable:
        model(torch.randn(4, 2))
    assert [layer.num_batches_tracked.item() for layer in model] == [0] * 30
    assert list(unrestorable) == ["> 100"]


def test_inspection_alone_copies_no_tensor():
    model = nn.BatchNorm1d(2)
    seen = Reach(model, [], copies=False)
    model(torch.randn(4, 2))
    seen.restore()
    assert model.running_mean.any()


def test_dicts_with_weak_references():
    layer = nn.Linear(2, 2)
    model, by_layer, by_name = nn.Sequential(layer), WeakKeyDictionary(), WeakValueDictionary()

    def keep(module, args, output):
        by_layer[module], by_name["last"] = output, module

    layer.register_forward_hook(keep)
    diagnose(model, torch.ones(1, 2))
    assert not len(by_layer) and not len(by_name)
    model(torch.ones(1, 2))
    kept = by_layer[layer]
    assert "holds_graph" in [finding.id for finding in diagnose(model)]
    diagnose(model, torch.ones(1, 2))
    assert by_layer[layer] is kept and by_name["last"] is layer


STEP, LAST, SEEN = ContextVar("step", default=0), ContextVar("last"), ContextVar("seen")


@functools.lru_cache
def positions(n: int) -> torch.Tensor:
    return torch.arange(n)


class Steps(nn.Linear):
    """Counts its calls in a context variable, keeps two things in others and its positions in a cache."""

    def forward(self, x):
        STEP.set(STEP.get() + 1)
        LAST.set(x)
        SEEN.get().append(x)
        return super().forward(x) + positions(len(x)).unsqueeze(1)


@pytest.fixture
def model():
    """Return a model whose two variables have values already, and whose cache is empty."""
    positions.cache_clear()
    token = SEEN.set([])
    yield Steps(2, 2)
    SEEN.reset(token)


@LOOKS
def test_context_variables_have_the_values_that_they_had(look, model):
    look(model, torch.ones(3, 2))
    assert STEP.get() == 0 and LAST.get(None) is None


def test_a_diagnosis_puts_back_what_variables_of_the_model_hold(model):
    diagnosed(model, torch.ones(3, 2))
    assert SEEN.get() == [] and positions.cache_info().currsize == 0


def test_a_diagnosis_says_that_a_cache_in_use_has_got_more(model):
    positions(1)
    assert diagnose(model, torch.ones(1, 2)).notes == []
    (note,) = diagnose(model, torch.ones(2, 2)).notes
    assert note.en.endswith(": lru_cache")
