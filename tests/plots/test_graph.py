"""Plots of shared memory match the tensors that they are given."""

import pytest
import torch

from hookedu import plot_sharing


def said(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def arrows(ax):
    """Return the position at which each arrow ends: one per storage."""
    return [text.xy for text in ax.texts if not text.get_text()]


@pytest.fixture(autouse=True)
def closed():
    import matplotlib

    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def test_names_that_share_memory_point_to_one_box():
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    ax = plot_sharing({"a": one, "b": one, "c": other})
    assert len(set(arrows(ax)[:2])) == 1 and len(set(arrows(ax))) == 2
    assert said(ax) == ["a", "b", "[1, 2]", "shared · _version 0", "c", "[1, 2]", "its own · _version 0"]


def test_a_view_shares_and_an_in_place_change_is_counted():
    grad = torch.ones(4)
    view = grad.view(2, 2)
    view.mul_(2)
    ax = plot_sharing({"grad": grad, "view": view})
    assert len(set(arrows(ax))) == 1
    assert "shared · _version 1" in said(ax) and "[2, 2, 2, 2]" in said(ax)


def test_empty_tensors_share_nothing():
    ax = plot_sharing({"a": torch.empty(0), "b": torch.empty(0)})
    assert len(set(arrows(ax))) == 2


def test_it_draws_into_given_axes_and_refuses_nothing():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert plot_sharing({"a": torch.ones(1)}, ax=ax) is ax
    with pytest.raises(ValueError, match="no gradients"):
        plot_sharing({})
