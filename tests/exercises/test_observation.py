"""What crosses from a learner's process to the judge: any value can be written down, and only what fits is read."""

import contextlib
import json
import math
from collections import namedtuple

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from hookedu.exercises.observation import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    ObservationError,
    Opaque,
    alike,
    decode,
    dumps,
    encode,
    is_tuple,
    loads,
    show,
    type_name,
)
from hookedu.exercises.structures import as_code, mapped, same_types, untyped
from hookedu.exercises.tools import same


class Text(str):
    pass


class Liar(type):
    @property
    def __name__(cls):
        raise RuntimeError

    def __eq__(cls, other):
        return True

    __hash__ = type.__hash__


class Lying(metaclass=Liar):
    @property
    def __class__(self):
        raise KeyError

    def __len__(self):
        return -1

    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise KeyError("loud")


def _endless():
    items = []
    items.append(items)
    return items


ODD = [
    torch.zeros(4096, 4096, 4096, 0),
    torch.zeros(0, 5000),
    torch.zeros(1, 1, 1, 1, 1, 1, 1, 1, 1),
    torch.tensor(float("nan")),
    torch.tensor([1, math.inf, -math.inf]),
    torch.ones(2, device="meta"),
    torch.eye(2).to_sparse(),
    torch.tensor([1 + 2j]),
    torch.ones(2).as_subclass(Loud),
    torch.ones(MAX_ELEMENTS + 1),
    math.nan,
    -math.inf,
    10**400,
    Text("x"),
    Lying(),
    Lying,
    _endless(),
    [0] * (MAX_ELEMENTS + 1),
    {n: n for n in range(MAX_ELEMENTS + 1)},
    "\ud800",
    object(),
    ...,
    {(1, 2): {3: 4}},
]


@pytest.mark.parametrize("n", range(len(ODD)))
def test_any_value_can_be_written_down_and_read(n):
    value = ODD[n]
    there = decode(loads(dumps({"observations": [encode({"got": value, "next": 1})]}))["observations"])[0]
    assert there["next"] == 1, "what is odd costs itself, not what comes after it"
    assert len(show(there["got"])) < 10_000


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
tensors = st.lists(st.floats(width=32), max_size=6).map(torch.tensor)
short = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=8)
keys = short | st.lists(short | st.tuples(short), max_size=3).map(tuple)
printed = st.recursive(
    short,
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=8).map(tuple)
        | st.dictionaries(keys, inner, max_size=8)
    ),
    max_leaves=20,
)


@given(printed)
def test_what_is_observed_prints_as_python_prints_it(value):
    read = decode(loads(dumps({"v": encode(value)}))["v"])
    assert show(read) == repr(read) == repr(value)


def test_of_many_items_the_first_are_printed():
    assert show(decode(encode((1,) * 9))) == show((1,) * 9) == "(1, 1, 1, 1, 1, 1, 1, 1, …)"
    assert show(decode(encode([(0,), ()]))) == "[(0,), ()]"
    Pair = namedtuple("Pair", "one two")
    assert show(Pair(1, 2)) == "Pair(one=1, two=2)"


def test_an_observed_tuple_is_told_from_a_list_only_where_that_is_asked():
    read = decode(encode({"result": (1, [2, (3,)]), (4, (5,)): "a key"}))
    assert read["result"] == [1, [2, [3]]] and same(read["result"], (1, (2, [3])))
    assert read[4, (5,)] == "a key"
    assert (
        is_tuple(read["result"]) and not is_tuple(read["result"][1]) and type_name(read["result"]) == "tuple"
    )
    assert same_types(read["result"], (1, [2, (3,)]))
    assert not same_types(read["result"], (1, (2, (3,)))) and not same_types([1], (1,))
    assert not same_types({"tuple": [1]}, (1,))


def test_a_structure_holds_values_of_lying_types_as_they_are():
    lying = Lying()
    assert mapped(untyped, (1, {"a": lying}))[1]["a"] is lying


@given(printed)
def test_a_structure_is_changed_with_its_containers_kept_and_told_from_that_without_tuples(value):
    read = decode(encode(value))
    assert repr(mapped(lambda v: v, read)) == repr(value)
    assert "(" not in as_code(mapped(untyped, decode(encode([1, (2, {"a": ()})]))))
    assert as_code(read) == repr(value)


values = st.recursive(
    plain | tensors | st.sampled_from(ODD[:8] + ODD[9:13]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_written_down_is_read_and_what_is_plain_is_the_same(value):
    read = decode([json.loads(dumps({"v": encode(value)}))["v"]])[0]
    if type(value) is list and all(type(v) in (bool, int, str, type(None)) for v in value):
        assert all(same(a, b) or type(a) is Opaque for a, b in zip(read, value, strict=True))


@given(values)
def test_every_value_is_alike_to_itself_and_to_nothing_with_one_more(value):
    assert alike(encode(value), encode(value))
    assert not alike(encode([value]), encode([value, 1]))


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=9), st.randoms())
def test_the_same_numbers_added_in_another_order_are_alike(numbers, random):
    gradients = [torch.tensor(n / 7) for n in numbers]
    one = torch.stack(gradients).square().sum().sqrt()
    random.shuffle(gradients)
    other = sum(gradient.square() for gradient in gradients).sqrt()
    assert alike(encode({"norm": [one]}), encode({"norm": [other]}))
    assert not alike(encode({"norm": [one]}), encode({"norm": [other + 0.01]}))


@pytest.mark.parametrize(
    ("one", "other"), [(1, 2), (1, 1.0), (True, 1), ("a", "b"), (0.0, -1e-3), ([1], [1.5]), ([1], (1,))]
)
def test_what_differs_by_more_than_rounding_is_not_alike(one, other):
    assert not alike(encode({"v": one}), encode({"v": other}))


@pytest.mark.parametrize("said", [None, [], [None, None], [1.0], [10**400, 1], [object(), 1.0]])
def test_a_tensor_of_the_learners_class_that_lies_about_its_values_is_known_by_its_type_alone(said):
    kind = type("LyingTensor", (torch.Tensor,), {"tolist": lambda self: said})
    tensor = torch.ones(2).as_subclass(kind)
    assert decode(json.loads(dumps({"value": encode(tensor)}))["value"]) == Opaque("LyingTensor")
    honest = type("HonestTensor", (torch.Tensor,), {})
    assert torch.equal(decode(encode(torch.ones(2).as_subclass(honest))), torch.ones(2))


def test_nesting_is_cut_where_reading_would_refuse_it():
    deep = 1
    for _ in range(3 * MAX_DEPTH):
        deep = [deep]
    assert "list of 1" in json.dumps(encode(deep))
    decode([encode(deep)])


json_values = st.recursive(
    plain
    | st.sampled_from(
        [
            {"dtype": "float32", "shape": [4096, 4096, 4096, 0], "values": []},
            {"dtype": "float32", "shape": [2], "values": ["nan", "1e999"]},
            {"dtype": "int64", "shape": [1], "values": [2**70]},
            {"dtype": "bool", "shape": [1], "values": ["x"]},
            {"dtype": "uint8", "shape": [1], "values": [-1]},
            {"dtype": "float32", "shape": [True], "values": [1]},
            {"dtype": [], "shape": {}, "values": 1},
            {"float": "nan"},
            {"float": 1},
            {"type": {}},
            {"dict": [[1]]},
            {"tuple": 1},
            {"tuple": {"tuple": []}},
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["dict", "tuple", "type", "dtype"]), inner, max_size=3
        )
        | inner.map(lambda v: {"dict": [[v, v]]})
        | st.lists(inner, max_size=3).map(lambda items: {"tuple": items})
    ),
    max_leaves=30,
)


@settings(max_examples=300)
@given(json_values)
def test_reading_raises_nothing_but_what_is_promised(value):
    with contextlib.suppress(ObservationError):
        show(decode(value))
