"""Fixtures of the widget tests: models must be unchanged afterwards, and no widget left behind."""

import copy
import gc
import io
import threading
from tokenize import COMMENT, generate_tokens

import ipywidgets
import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from hookedu.language import preference
from hookedu.widgets.programs import sides
from tests.authoring.test_localize import CHINESE
from tests.hooks.capture_models import hook_tables

matplotlib.use("agg")


def marks(model) -> list:
    """Return all state of a model and the process that a widget must not change."""
    return [
        [module.training for module in model.modules()],
        copy.deepcopy(model.state_dict()),
        [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        [p.requires_grad for p in model.parameters()],
        torch.get_rng_state(),
        hook_tables(model),
    ]


def same(one, other) -> bool:
    """Check whether two nested values are equal, tensors included."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and same(list(one.values()), list(other.values()))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.fixture
def untouched():
    """Return a function that takes a model, which must be unchanged at the end of the test."""
    watched = []
    yield lambda model: watched.append((model, marks(model)))
    for model, before in watched:
        assert same(before, marks(model))


@pytest.fixture(autouse=True)
def nothing_left():
    """Close all widgets after each test, and check that no pyplot figure and no thread is left."""
    threads, figures = threading.active_count(), plt.get_fignums()
    yield
    ipywidgets.Widget.close_all()
    if threading.active_count() > threads:
        gc.collect()  # ends a thread whose widget nobody refers to; for each test it would take up to a second
    assert threading.active_count() <= threads  # a thread of an earlier test may end meanwhile
    assert plt.get_fignums() == figures


@pytest.fixture
def closes():
    """Return a function that closes a widget and checks that its parts and observers are gone."""

    def close(widget) -> None:
        before = len(ipywidgets.widgets.widget._instances)
        widget.close()
        assert len(ipywidgets.widgets.widget._instances) < before
        assert widget._speak not in preference._observers

    return close


def english_comments(code: str) -> list[str]:
    """Return the comments of a program that are English for a Chinese reader as well; only comments may differ."""
    in_english, in_chinese = (_tokens(sides(code)[language]) for language in ("en", "zh"))
    assert [t for kind, t in in_english if kind != COMMENT] == [
        t for kind, t in in_chinese if kind != COMMENT
    ]
    return [t for kind, t in in_chinese if kind == COMMENT and not CHINESE.search(t)]


def _tokens(code: str) -> list[tuple[int, str]]:
    return [(token.type, token.string) for token in generate_tokens(io.StringIO(code).readline)]
