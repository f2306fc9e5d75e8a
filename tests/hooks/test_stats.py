"""Statistics that wait: those of small tensors are computed together, and nobody can tell."""

import copy
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from hookedu import record
from hookedu.hooks import stats as module
from hookedu.hooks.stats import Stats, Waiting

SIZES = st.lists(st.integers(0, 70), max_size=3).map(tuple)
DTYPES = st.sampled_from(
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64]
)
SPECIAL = st.lists(st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e30, 1e-30]), max_size=4)


@st.composite
def tensors(draw) -> torch.Tensor:
    shape, dtype, special = draw(SIZES), draw(DTYPES), draw(SPECIAL)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    tensor = torch.randn(shape, generator=generator) * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    tensor += draw(st.sampled_from([0.0, 1e6]))
    for place, value in enumerate(special[: tensor.numel()]):
        tensor.view(-1)[place] = value
    if draw(st.booleans()) and tensor.dim() > 1:
        tensor = tensor.transpose(0, 1)
    if dtype in (torch.int64, torch.bool):
        tensor = tensor.nan_to_num(0, 9, -9).clamp(-9, 9)
    return tensor.to(dtype)


def same(one: Stats, other: Stats) -> bool:
    """Check that all numbers agree to the rounding of float64 sums, NaN with NaN."""
    a, b = one.as_dict(), other.as_dict()
    keys = ("shape", "dtype", "count", "nan", "inf", "min", "max", "zeros")
    close = all(a[key] == pytest.approx(b[key], rel=1e-9, abs=1e-12, nan_ok=True) for key in ("mean", "std"))
    return close and all(a[key] == b[key] or (a[key] != a[key] and b[key] != b[key]) for key in keys)


@given(st.lists(tensors(), max_size=12), st.sampled_from([1, 300, 2**18]), st.data())
def test_waiting_changes_no_number(given_, most, data):
    expected = [Stats(tensor) for tensor in given_]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "_MOST_WAITING", most
        )  # bytes: computed one by one, in groups, or when they are read
        waiting = Waiting()
        found = []
        for tensor in given_:
            found.append(Stats(tensor, waiting))
            tensor.zero_()  # a change that comes later does not show
            if data.draw(st.booleans()):
                _ = found[data.draw(st.integers(0, len(found) - 1))].mean
    assert all(same(*pair) for pair in zip(found, expected, strict=True))
    assert all(same(*pair) for pair in zip(pickle.loads(pickle.dumps(found)), expected, strict=True))


def test_copies_made_while_it_waits_have_their_numbers():
    waiting = Waiting()
    stats = Stats(torch.tensor([1.0, 3.0]), waiting)
    twins = [copy.copy(stats), copy.deepcopy(stats), Stats.merged([stats])]
    waiting.clear()
    assert [twin.mean for twin in [stats, *twins]] == [2.0] * 4
    assert all(twin._copy is None for twin in [stats, *twins])


def test_no_more_than_the_promised_copies_wait():
    chain = nn.Sequential(*(nn.Linear(64, 64) for _ in range(8)))
    with record(chain, nn.Linear, keep="stats") as rec:
        for _ in range(100):
            chain(torch.randn(16, 64))
    waits = [s._copy.nbytes for event in rec.events for s in [event.value] if s._copy is not None]
    assert len(rec.events) == 800
    assert 0 < sum(waits) <= 2**18
    assert rec["3"].stats().count == 100 * 16 * 64


def test_what_is_large_odd_or_on_its_way_through_vmap_does_not_wait():
    waiting = Waiting()
    for tensor in (
        torch.ones(2**14),
        torch.ones(3, dtype=torch.int64),
        torch.ones(3).to_sparse(),
        torch.empty(3, device="meta"),
        torch.empty(0),
    ):
        assert Stats(tensor, waiting)._copy is None
    inside = []
    torch.func.vmap(lambda x: inside.append(Stats(x, waiting)) or x)(torch.ones(2, 3))
    assert inside[0]._copy is None


class Refused(TorchDispatchMode):
    """A mode in which no operation is allowed, or none but copies."""

    def __init__(self, copies: bool) -> None:
        super().__init__()
        self.copies = copies

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.copies and func is torch.ops.aten.clone.default:
            return func(*args, **(kwargs or {}))
        raise RuntimeError("not here")


@pytest.mark.parametrize("copies", [True, False])
def test_a_mode_that_allows_nothing_raises_nothing_and_spoils_nothing(monkeypatch, copies):
    waiting = Waiting()
    before = Stats(torch.tensor([1.0, 3.0]), waiting)
    tensor = torch.tensor([5.0])
    monkeypatch.setattr(module, "_MOST_WAITING", 1)  # all that waits is to be computed at once
    with Refused(copies):
        inside = Stats(tensor, waiting)
        assert math.isnan(before.mean)
    assert Stats(torch.tensor([2.0, 4.0]), waiting).mean == 3
    assert before.mean == 2
    assert inside.mean == 5 if copies else math.isnan(inside.mean)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_waits_from_inference_mode_is_computed_outside(dtype):
    waiting = Waiting()
    with torch.inference_mode():
        given_ = [
            torch.tensor(numbers, dtype=dtype) for numbers in ([1.0, 3.0], [1e6, 1e6 + 1], [math.nan, 2.0])
        ]
        found = [Stats(tensor, waiting) for tensor in given_]
    module._compute(found[:2])
    assert [one.mean for one in found] == [2, 1e6 + 0.5, 2]
    assert found[1].std == pytest.approx(0.5**0.5)
