"""Fixtures of the widget tests: models must be unchanged afterwards, and no widget left behind."""

import copy
import gc
import threading

import ipywidgets
import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from hookedu.language import preference
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
    preference.language = "both"
    ipywidgets.Widget.close_all()
    gc.collect()
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
