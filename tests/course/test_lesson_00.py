"""Tests that the picture with which lesson 00 opens shows what its caption says."""

import runpy

import pytest

from hookedu import catalog
from hookedu.models.shapes import CLASSES, load_model


@pytest.fixture(scope="module")
def opening():
    return runpy.run_path(str(catalog.find("00").images / "opening.py"))


def test_the_answer_turns_from_the_cross_to_the_triangle(opening):
    model, x = load_model(), opening["two_shapes"]()
    assert CLASSES[model(x)[0].argmax()] == "cross"
    assert CLASSES[opening["without"](model, x).argmax()] == "triangle"


@pytest.mark.parametrize(("name", "half"), [("cross", 0), ("triangle", 1)])
def test_each_heat_map_is_brightest_where_its_shape_is(opening, name, half):
    light = opening["where"](load_model(), opening["two_shapes"](), name)
    assert (light.argmax() % 8) // 4 == half
