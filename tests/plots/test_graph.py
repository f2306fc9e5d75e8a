"""Plots of graphs and of shared memory match the tensors that they are given, and stay small."""

import pytest
import torch

from hookedu import plot_graph, plot_sharing


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


def boxes(ax):
    return [
        text.get_text().split(" = ")[0]
        for text in ax.texts
        if " = " in text.get_text() and text.get_fontsize() > 9
    ]


def test_of_a_long_chain_the_end_is_drawn_and_the_title_says_so():
    tensors = {"x": torch.ones((), requires_grad=True)}
    for i in range(100):
        tensors[f"h{i}"] = [*tensors.values()][-1] * 1
    ax = plot_graph(tensors["h99"], tensors)
    assert boxes(ax) == [f"h{i}" for i in range(92, 100)] and "8 of 101 tensors" in ax.get_title(loc="left")
    assert len(arrows(ax)) == 7 and ax.figure.get_figwidth() <= 20


def test_of_many_tensors_side_by_side_as_many_are_drawn_as_fit():
    leaves = {f"w{i}": torch.ones((), requires_grad=True) for i in range(100)}
    total = sum(leaves.values())
    ax = plot_graph(total, leaves | {"total": total})
    assert len({*boxes(ax)}) == 25 and ax.figure.get_figheight() <= 30
    assert "25 of 101 tensors" in ax.get_title(loc="left")


def test_a_graph_that_fits_is_whole_and_says_nothing():
    x = torch.ones((), requires_grad=True)
    y = x * 2
    ax = plot_graph(y, {"x": x, "y": y})
    assert {*boxes(ax)} == {"x", "y"} and not ax.get_title(loc="left")


def test_of_many_names_the_first_are_drawn():
    ax = plot_sharing({str(i): torch.ones(1) for i in range(60)})
    assert len(arrows(ax)) == 36 and ax.get_title(loc="left") == "first 36 of 60 tensors"
    assert ax.figure.get_figheight() <= 30


def test_tensors_without_storage_or_version_share_with_nobody():
    with torch.inference_mode():
        inference = torch.ones(2)
    sparse = torch.eye(3).to_sparse()
    ax = plot_sharing({"i": inference, "s": sparse, "again": sparse, "m": torch.ones(5, device="meta")})
    assert said(ax)[-3:] == ["m", "5", "its own · _version 0"] and "its own" in said(ax)
    assert len(set(arrows(ax))) == 3
