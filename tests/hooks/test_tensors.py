"""Tensors in nested values, and their statistics."""

import math
from collections import OrderedDict, UserDict, defaultdict, deque
from fractions import Fraction

import pytest
import torch

from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import (
    map_tensors,
    named_tensors,
    shape_of,
    shape_text,
    storage_bytes,
    tensors_in,
)
from tests.hooks.capture_models import Answer, Pair


def test_map_tensors_keeps_types_orders_and_everything_that_is_no_tensor():
    marker = object()
    value = {
        "b": torch.ones(1),
        "a": [torch.ones(2), None, "text", marker],
        "pair": Pair(torch.ones(3), 4),
        "answer": Answer(torch.ones(4)),
        "ordered": OrderedDict(z=torch.ones(5)),
        "default": defaultdict(list, k=torch.ones(6)),
    }
    result = map_tensors(lambda t: t + 1, value)
    assert list(result) == list(value)
    assert [type(item) for item in result.values()] == [type(item) for item in value.values()]
    assert result["a"][1:] == [None, "text", marker]
    assert result["pair"].right == 4 and result["answer"].note == "kept"
    assert result["default"]["new"] == []
    assert [t.numel() for t in tensors_in(result)] == [1, 2, 3, 4, 5, 6]
    assert all((t == 2).all() for t in tensors_in(result)) and all((t == 1).all() for t in tensors_in(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(1, 8, 4, 4), "1×8×4×4"),
        (torch.tensor(1.0), "scalar"),
        ((torch.ones(5, 2), (torch.ones(1), torch.ones(1))), "(5×2, (1, 1))"),
        ([torch.ones(2), None], "[2, None]"),
        ({"out": torch.ones(1, 2)}, "{'out': 1×2}"),
        (Answer(torch.ones(2)), "Answer(logits=2, note=str)"),
    ],
)
def test_shapes_read_as_people_write_them(value, text):
    assert shape_text(shape_of(value)) == text


def test_shared_storage_counts_once():
    base = torch.zeros(10)
    assert storage_bytes(iter([base, base[:5], base.view(2, 5)])) == 40
    assert storage_bytes(iter([base, torch.zeros(1)])) == 44
    assert storage_bytes(iter([torch.eye(3).to_sparse()])) == 2 * 3 * 8 + 3 * 4
    assert (
        storage_bytes(iter([torch.sparse_csr_tensor([0, 1, 2, 3], [0, 1, 2], [1.0] * 3)]))
        == (4 + 3) * 8 + 3 * 4
    )


class TestStats:
    def test_numbers_are_torch_s_own(self):
        tensor = torch.randn(7, 5)
        stats = Stats(tensor)
        assert (stats.min, stats.max) == (tensor.min().item(), tensor.max().item())
        assert stats.mean == pytest.approx(tensor.mean().item(), abs=1e-7)
        assert stats.std == pytest.approx(tensor.std().item(), rel=1e-6)
        assert (stats.count, stats.nan, stats.inf, stats.zeros) == (35, 0, 0, 0)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("middle", [0, 1, 3.8, 4, 1000, 1e7])
    def test_std_is_exact_wherever_the_mean_lies(self, middle, dtype):
        tensor = torch.randn(30, 40, dtype=dtype) + middle
        before, numbers = tensor.clone(), [Fraction(number) for number in tensor.flatten().tolist()]
        mean = sum(numbers) / len(numbers)
        variance = sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)
        assert Stats(tensor).std == pytest.approx(math.sqrt(variance), rel=1e-13)
        assert Stats(tensor).mean == pytest.approx(float(mean), rel=1e-13)
        assert tensor.equal(before)

    @pytest.mark.parametrize("value", [1.7e308, 1e200, 1e-200, 5e-324])
    def test_squares_beyond_the_range_of_float64_do_no_harm(self, value):
        stats = Stats(torch.tensor([value, value], dtype=torch.float64))
        assert (stats.min, stats.max, stats.count, stats.zeros) == (value, value, 2, 0)

    def test_nan_and_inf_are_counted_and_left_out(self):
        stats = Stats(torch.tensor([1.0, 3.0, float("nan"), float("inf"), -float("inf"), 0.0]))
        assert (stats.count, stats.nan, stats.inf) == (6, 1, 2)
        assert (stats.min, stats.max) == (0.0, 3.0) and stats.mean == pytest.approx(4 / 3)
        assert stats.zeros == pytest.approx(1 / 6)

    @pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16])
    def test_every_dtype_has_numbers(self, dtype):
        stats = Stats(torch.tensor([0, 1, 1, 0]).to(dtype))
        assert (stats.min, stats.max, stats.mean, stats.zeros) == (0, 1, 0.5, 0.5)
        assert stats.dtype == dtype

    def test_complex_numbers_give_those_of_their_size(self):
        assert Stats(torch.tensor([3 + 4j])).max == 5

    @pytest.mark.parametrize("tensor", [torch.empty(0, 3), torch.tensor([float("nan")])])
    def test_without_a_finite_value_there_is_no_mean_and_no_error(self, tensor):
        both = Stats.merged([Stats(tensor), Stats(tensor)])
        for stats in (Stats(tensor), both):
            assert all(math.isnan(getattr(stats, name)) for name in ("min", "max", "mean", "std"))
        assert "min=nan, max=nan, mean=nan, std=nan" in repr(both)
        with_one = Stats.merged([both, Stats(torch.tensor([2.0]))])
        assert (with_one.min, with_one.max, with_one.mean) == (2, 2, 2) and math.isnan(with_one.std)

    def test_one_finite_value_has_no_spread(self):
        stats = Stats(torch.tensor([3.0, float("inf")]))
        assert (stats.min, stats.max) == (3, 3) and math.isnan(stats.std)

    def test_of_numbers_on_no_device_nothing_is_known_however_many_are_merged(self):
        stats = Stats.merged([Stats(torch.zeros(2, device="meta"))] * 3)
        assert stats.count == 6
        assert all(math.isnan(getattr(stats, name)) for name in ("min", "max", "mean", "std", "zeros"))

    def test_large_integers_are_exact(self):
        stats = Stats(torch.tensor([1_700_000_001, 1_700_000_003]))
        assert (stats.min, stats.mean, stats.max) == (1_700_000_001, 1_700_000_002, 1_700_000_003)

    def test_a_wrapper_that_has_left_its_function_has_no_numbers_and_raises_nothing(self):
        kept = []
        torch.func.vmap(torch.func.grad(lambda x: (kept.append(x.detach().clone()), x.sum())[1]))(
            torch.ones(2, 3)
        )
        assert math.isnan(Stats(kept[0]).mean) and Stats(kept[0]).shape == (3,)


NESTED = {
    "tensor": torch.ones(1),
    "pair": Pair(torch.ones(2), [torch.ones(3), {"a": (torch.ones(4), None)}]),
    "answer": Answer(torch.ones(5), torch.ones(6)),
    "ordered": OrderedDict(b=torch.ones(7), a="text"),
    7: (),
    "others": [UserDict(a=torch.ones(8)), deque([torch.ones(9)]), {3, 4}],
}


def test_the_name_of_a_tensor_is_the_code_that_reaches_it():
    found = dict(named_tensors(NESTED))
    assert [len(tensor) for tensor in found.values()] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    for path, tensor in found.items():
        assert eval(f"NESTED{path}") is tensor


def test_every_walk_meets_the_same_tensors_in_the_same_order():
    met = []
    map_tensors(met.append, NESTED)
    assert list(map(id, met)) == list(map(id, tensors_in(NESTED)))


def test_the_text_of_a_shape_with_an_array_among_the_items():
    import numpy as np

    assert shape_text((np.zeros(3), (2, 3))) == "(ndarray, 2×3)"
