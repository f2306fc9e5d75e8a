"""Test the helpers shared by probes and judges."""

import pytest
import torch

from hookedu.exercises.observation import decode, encode
from hookedu.exercises.tools import copies, same

VALUES = {
    "int": 3,
    "float": 3.0,
    "bool": True,
    "str": "relu",
    "None": None,
    "list": [1, [torch.ones(2), "a"], None],
    "empty": [],
    "dict": {"a": torch.ones(2), "b": {"c": 1}},
    "float32": torch.ones(2),
    "float64": torch.ones(2, dtype=torch.float64),
    "shape": torch.ones(2, 1),
    "value": torch.tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_the_same_as_itself_and_as_what_crossed_the_border_and_as_no_other(name):
    value = VALUES[name]
    assert same(value, value) and same(copies(value), value)
    assert same(decode(encode(value)), value)
    assert [other for other in VALUES if same(VALUES[other], value)] == [name]


def test_a_tuple_with_the_same_items_is_the_same_as_a_list():
    assert same(decode(encode((1, torch.ones(2)))), [1, torch.ones(2)])
    assert same(decode(encode([1, torch.ones(2)])), (1, torch.ones(2)))
    assert not same([1], (1, 2)) and not same(3, [3])


def test_copies_keep_the_structure_and_share_nothing():
    held = {"a": [torch.ones(2, requires_grad=True)], "b": (torch.ones(1), "text")}
    kept = copies(held)
    assert isinstance(kept["b"], tuple) and not kept["a"][0].requires_grad
    with torch.no_grad():
        held["a"][0].zero_(), held["b"][0].zero_()
    assert kept["a"][0].tolist() == [1.0, 1.0] and kept["b"][0].item() == 1.0
