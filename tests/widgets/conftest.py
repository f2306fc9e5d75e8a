"""What the tests of the widgets share: a model left as it was, and no widget left behind."""

import copy
import gc
import threading

import ipywidgets
import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from hookedu.widgets.language_toggle import preference
from tests.hooks.capture_models import hook_tables

matplotlib.use("agg")


def marks(model) -> list:
    """Everything of a model and the process that a widget must not change."""
    return [
        [module.training for module in model.modules()],
        copy.deepcopy(model.state_dict()),
        [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        [p.requires_grad for p in model.parameters()],
        torch.get_rng_state(),
        hook_tables(model),
    ]


def same(one, other) -> bool:
    """Whether two nested values hold the same tensors and the same everything else."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and same(list(one.values()), list(other.values()))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.fixture
def untouched():
    """Call it with a model: at the end of the test the model must be as it is then."""
    watched = []
    yield lambda model: watched.append((model, marks(model)))
    for model, before in watched:
        assert same(before, marks(model))


@pytest.fixture(scope="package", autouse=True)
def collecting_is_cheap():
    """Put what was there before out of the garbage collector's sight: else each sweep walks all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_left():
    """After each test: no figure of pyplot, no thread; every widget is closed and let go."""
    threads, figures = threading.active_count(), plt.get_fignums()
    yield
    preference.language = "both"
    ipywidgets.Widget.close_all()
    gc.collect()
    assert threading.active_count() == threads
    assert plt.get_fignums() == figures


@pytest.fixture
def closes():
    """Close a widget and see that every part of it is gone."""

    def close(widget) -> None:
        before = len(ipywidgets.widgets.widget._instances)
        widget.close()
        assert len(ipywidgets.widgets.widget._instances) < before
        assert (
            not preference._trait_notifiers.get("language", {}).get("change", [])
            or widget._speak not in (preference._trait_notifiers["language"]["change"])
        )

    return close
