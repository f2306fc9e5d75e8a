"""Plots of graphs and of shared memory match the tensors that they are given, can be read, and stay small."""

import itertools
import math

import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.transforms import Bbox

from hookedu import plot_graph, plot_sharing
from hookedu.plots.graph import BACKWARD, FORWARD


def said(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def arrows(ax):
    """Return the position at which each arrow ends: one per storage."""
    return [arrow._posA_posB[1] for arrow in ax.patches]


def numbers(ax):
    """Return what the backward arrows bring."""
    return [text.get_text() for text in ax.texts if text.get_color() == BACKWARD]


def fork(**options):
    """Return the graph of lesson 01: two paths from w to y."""
    w, x = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    a, b = w + x, w + 1
    y = a * b
    y.backward(**options)
    return y, {"w": w, "x": x, "a": a, "b": b, "y": y}


def chain():
    """Return the graph with the longest texts: lists of four numbers."""
    x = torch.full((4,), 2.0, requires_grad=True)
    y = x**2
    z = y.mean()
    z.backward()
    return z, {"x": x, "y": y, "z": z}


def shortcut():
    x = torch.tensor(2.0, requires_grad=True)
    h = 3 * x
    k = h * 5
    y = k + x
    y.backward(retain_graph=True)
    return y, {"x": x, "h": h, "k": k, "y": y}


GRAPHS = {"fork": lambda: fork(retain_graph=True), "chain": chain, "shortcut": shortcut}


@pytest.fixture(autouse=True)
def closed():
    import matplotlib

    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def test_names_that_share_memory_point_to_one_box():
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    ax = plot_sharing({"a": one, "b": one.view(2, 1), "c": other})
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
    with pytest.raises(ValueError, match="nothing to draw"):
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


def test_arrows_back_carry_what_they_bring_and_boxes_the_sum():
    ax = plot_graph(*fork(retain_graph=True))
    assert sorted(numbers(ax)) == ["2", "2", "2", "3", "3"]
    assert ".grad = 5" in said(ax) and len(ax.patches) == 10
    assert numbers(plot_graph(*chain())) == ["[1, 1, 1, 1]", "[0.25, 0.25, 0.25, 0.25]"]


def test_before_backward_nothing_points_back_and_a_leaf_without_gradient_gets_no_arrow():
    x, idle = torch.ones((), requires_grad=True), torch.ones((), requires_grad=True)
    y = x * idle
    assert {arrow.get_edgecolor() for arrow in plot_graph(y, {"x": x, "idle": idle, "y": y}).patches} == {
        (*to_rgb(FORWARD), 1)
    }
    y.backward(inputs=[x])
    ax = plot_graph(y, {"x": x, "idle": idle, "y": y})
    assert ".grad = None" in said(ax) and len(ax.patches) == 3 and numbers(ax) == ["1"]


def drawn(graph, dpi=100):
    """Return the Axes of a graph that has been drawn: only now the frames of boxes have their size."""
    ax = plot_graph(*GRAPHS[graph]())
    ax.figure.set_dpi(dpi)
    ax.figure.canvas.draw()
    return ax


def framed(ax):
    """Return the texts in boxes, leaves twice."""
    return [text for text in ax.texts if text.get_bbox_patch() and text.get_bbox_patch().get_edgecolor()[3]]


def distance(point, text) -> float:
    """Return the distance of a point from the frame of a text, in pixels."""
    frame = text.get_bbox_patch()
    (corners,) = frame.get_path().interpolated(20).to_polygons()
    return min(math.dist(point, corner) for corner in frame.get_transform().transform(corners))


@pytest.mark.parametrize("dpi", [100, 200])
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_arrow_touches_the_boxes_that_it_joins(graph, dpi):
    ax = drawn(graph, dpi)
    for arrow in ax.patches:
        (shaft, _), _ = arrow._get_path_in_displaycoord()
        for end, position in zip(shaft.vertices[[0, -1]], arrow._posA_posB, strict=True):
            boxes = [text for text in framed(ax) if text.get_position() == position]
            assert min(distance(end, box) for box in boxes) < 0.03 * dpi  # the width of three lines


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_text_covers_another(graph):
    ax = drawn(graph)
    places = {(text.get_text(), text.get_position()): text.get_window_extent() for text in ax.texts}
    for (one, here), (other, there) in itertools.combinations(places.items(), 2):
        assert Bbox.intersection(here, there) is None, f"{one} and {other}"


def contrast(colour, background) -> float:
    """Return the contrast ratio of WCAG 2.2."""

    def luminance(colour):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted((luminance(colour), luminance(background)))
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_all_text_and_lines_is_that_of_wcag_aa():
    assert contrast("black", "white") == pytest.approx(21) and contrast("#777777", "white") < 4.5
    y, tensors = fork(retain_graph=True)
    graph = plot_graph(y, tensors, gradients={"a": torch.tensor(2.0)})
    sharing = plot_sharing({"a": torch.ones(1), "b": (one := torch.ones(1)), "c": one})
    for ax in (graph, sharing):
        lines = [line.get_edgecolor() for line in ax.patches]
        lines += [text.get_bbox_patch().get_edgecolor() for text in framed(ax)]
        for colour in [text.get_color() for text in ax.texts] + lines:
            assert contrast(colour, "white") >= 4.5, colour
        behind = [ax.figure.get_facecolor()] + [
            text.get_bbox_patch().get_facecolor() for text in ax.texts if text.get_bbox_patch()
        ]
        assert {*map(to_rgb, behind)} == {(1, 1, 1)}
