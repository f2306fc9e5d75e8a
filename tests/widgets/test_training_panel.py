"""TrainingPanel without a browser."""

import base64
import io

import pytest
import torch
from matplotlib.image import imread
from PIL import Image
from torch import nn

from hookedu import TrainingPanel, list_hooks
from hookedu.language import preference
from hookedu.models.ward import admit, train
from hookedu.plots.strips import draw_strips
from hookedu.widgets import training_panel


@pytest.fixture(autouse=True)
def both_languages():
    preference.language = "both"


def run(fault, seed=3):
    patient = admit(seed, fault)
    model, optimizer = patient.build()
    panel = TrainingPanel(model, optimizer)
    with panel:
        train(model, optimizer, patient.data)
    return panel, patient, model, optimizer


def strips(panel):
    return {axes.get_title("left"): axes for axes in panel.figure.axes if axes.get_title("left")}


def test_one_step_and_one_layer_are_in_the_singular():
    model = nn.Linear(2, 1)
    panel = TrainingPanel(model, optimizer := torch.optim.SGD(model.parameters(), lr=0.1))
    with panel:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert "1 step, 1 layer." in panel._says.value and "1 步，1 层。" in panel._says.value


def test_before_the_first_step_it_says_what_to_do():
    panel = TrainingPanel(*admit(0, "healthy").build())
    assert panel.figure is None and panel.rows == [] and panel.source is None
    assert "with panel" in panel._says.value and "训练循环" in panel._says.value


def test_a_strip_per_statistic_with_a_row_per_layer_and_a_column_per_step():
    panel, patient, _, _ = run("healthy")
    layers = list(dict.fromkeys(row.layer for row in panel.rows))
    shown = strips(panel)
    assert list(shown) == [
        "activation: mean",
        "activation: std",
        "norm of the gradient at the output",
        "update ratio",
        "ReLU units not positive in the step",
    ]
    gradient = shown["norm of the gradient at the output"]
    assert [label.get_text() for label in gradient.get_yticklabels()] == layers
    assert gradient.images[0].get_array().shape[:2] == (len(layers), len(patient.data))
    picture = imread(io.BytesIO(panel._picture.value), format="png")
    assert picture.shape[1] == 2000 and panel._picture.width == "1000" and panel._picture.tooltip
    assert f"{len(patient.data)} steps, {len(layers)} layers" in panel._says.value
    assert f"step {len(patient.data) - 1}" in panel._table.value and panel.error is None


def test_what_is_missing_zero_or_nan_has_a_colour_and_is_said():
    panel, _, _, _ = run("detached_branch")
    assert "没有梯度到达" in panel._says.value and "No gradient arrives at" in panel._says.value
    assert "stand still" in panel._says.value
    gradient = strips(panel)["norm of the gradient at the output"].images[0].get_array()
    ratio = strips(panel)["update ratio"].images[0].get_array()
    grey, black = [208 / 255] * 3, [0.0] * 3
    assert any(all(abs(pixel[:3] - grey) < 0.01) for pixel in gradient[:, 0])
    assert any(all(pixel[:3] == black) for pixel in ratio[:, 0])
    panel, _, _, _ = run("bad_sample")
    assert panel.source is not None and f"sample {panel.source.sample}" in panel._says.value
    mean = strips(panel)["activation: mean"].images[0].get_array()
    assert all(abs(mean[-1, -1][:3] - [230 / 255, 0, 230 / 255]) < 0.01)


def test_dead_units_are_said():
    panel, _, _, _ = run("dying_relus")
    assert "More than half of the units" in panel._says.value


def test_pictures_come_while_it_trains_but_not_after_every_step(monkeypatch):
    drawn = []

    def draw(figure, rows):
        drawn.append(max(row.step for row in rows))
        draw_strips(figure, rows)

    monkeypatch.setattr(training_panel, "draw_strips", draw)
    monkeypatch.setattr(training_panel, "_PAUSE", 0.0)
    _, patient, _, _ = run("healthy")
    last = len(patient.data) - 1
    assert drawn[-1] == last and 1 < len(set(drawn)) < last
    drawn.clear()
    monkeypatch.setattr(training_panel, "_PAUSE", 1000.0)
    run("healthy")
    assert drawn == [last]


def test_an_error_while_drawing_is_shown_and_training_goes_on(monkeypatch):
    def fail(figure, rows):
        raise ValueError("no ink")

    monkeypatch.setattr(training_panel, "draw_strips", fail)
    monkeypatch.setattr(training_panel, "_PAUSE", 0.0)
    panel, patient, _, _ = run("healthy")
    assert isinstance(panel.error, ValueError) and "no ink" in panel._error_report.value
    assert len({row.step for row in panel.rows}) == len(patient.data)


def test_nothing_is_left_behind_even_after_an_error(closes):
    patient = admit(5, "healthy")
    model, optimizer = patient.build()
    panel = TrainingPanel(model, optimizer)
    with pytest.raises(ZeroDivisionError), panel:
        raise ZeroDivisionError
    with panel:
        train(model, optimizer, patient.data[:2])
        panel.close()  # while it trains
    assert list_hooks(model) == []
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
    assert panel.figure is None and panel.rows == []
    with pytest.raises(RuntimeError, match="closed"), panel:
        pass
    other = TrainingPanel(model, optimizer)
    closes(other)


def test_a_notebook_keeps_a_still_picture():
    panel, _, _, _ = run("healthy")
    bundle, metadata = panel._repr_mimebundle_()
    kept, drawn = (
        Image.open(io.BytesIO(data)).tobytes()
        for data in (base64.b64decode(bundle["image/png"]), panel._picture.value)
    )
    assert kept == drawn
    assert metadata == {"image/png": {"width": 1000}}  # of the page, half as many as it has
    assert "application/vnd.jupyter.widget-view+json" in bundle and bundle["text/plain"] == "TrainingPanel()"
    assert "image/png" not in TrainingPanel(*admit(0, "healthy").build())._repr_mimebundle_()[0]


def test_its_words_follow_the_language():
    panel, _, _, _ = run("healthy")
    preference.language = "en"
    assert "层" not in panel._says.value and "layers" in panel._says.value
    assert "table below" in panel._picture.tooltip
    preference.language = "zh"
    assert "layers" not in panel._says.value and "层" in panel._says.value


def test_a_model_that_is_one_layer_without_any_gradient():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    panel = TrainingPanel(model, optimizer)
    with panel:
        model(torch.zeros(1, 2))
    assert [row.layer for row in panel.rows] == [""] and panel.error is None
    assert "(model)" in panel._says.value and panel.figure is not None
