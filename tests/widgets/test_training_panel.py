"""TrainingPanel without a browser; tests/browser/test_training_panel.py has the rest."""

import base64
import io

import pytest
import torch
from matplotlib.text import Text
from PIL import Image
from torch import nn

from hookedu import TrainingPanel, list_hooks
from hookedu.models.ward import admit, train
from hookedu.plots.strips import short, strips_of
from hookedu.widgets import training_panel


def run(fault, seed=3):
    patient = admit(seed, fault)
    model, optimizer = patient.build()
    panel = TrainingPanel(model, optimizer)
    with panel:
        train(model, optimizer, patient.data)
    return panel, patient, model, optimizer


def axes_of(panel):
    return {axes.get_title("left"): axes for axes in panel.figure.axes if axes.get_title("left")}


def says(panel):
    return panel.words["summary"]


def posted(panel):
    """Return what the browser has: its content, and its tensors by name."""
    message, buffers = panel._posted["strips"]
    kinds = {"float32": torch.float32, "int32": torch.int32, "uint8": torch.uint8}
    tensors = {
        each["name"]: torch.frombuffer(bytearray(data), dtype=kinds[each["kind"]]).reshape(each["shape"])
        for each, data in zip(message["tensors"], buffers, strict=True)
    }
    return message["content"], tensors


def test_one_step_and_one_layer_are_in_the_singular():
    model = nn.Linear(2, 1)
    panel = TrainingPanel(model, optimizer := torch.optim.SGD(model.parameters(), lr=0.1))
    with panel:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert "1 step, 1 layer." in says(panel)["en"] and "1 步，1 层。" in says(panel)["zh"]


def test_before_the_first_step_it_says_what_to_do():
    panel = TrainingPanel(*admit(0, "healthy").build())
    assert panel.figure is None and panel.rows == [] and panel.source is None and panel.noted == {}
    assert "with panel" in says(panel)["en"] and "训练循环" in says(panel)["zh"]


def test_the_browser_gets_every_number_with_a_row_per_layer_and_a_column_per_step():
    panel, patient, _, _ = run("healthy")
    content, tensors = posted(panel)
    assert content["layers"] == list(dict.fromkeys(row.layer for row in panel.rows)) and content["done"]
    assert tensors["steps"].tolist() == list(range(len(patient.data)))
    for strip in content["strips"]:
        shades, values = (tensors[f"{strip['name']}_{what}"] for what in ("shades", "values"))
        for row in panel.rows:
            value = getattr(row, strip["name"])
            if row.layer not in strip["layers"]:
                assert value is None
                continue
            at = strip["layers"].index(row.layer), row.step
            if value is None:
                assert shades[at] == content["shades"] + 1
            else:
                assert values[at].item() == pytest.approx(value)
    assert [strip["name"] for strip in content["strips"]] == ["mean", "std", "gradient", "ratio", "dead"]
    assert panel.error is None and panel.failure == {}


def test_shades_run_from_the_lowest_to_the_highest_value_as_in_the_still_picture():
    panel, _, _, _ = run("healthy")
    content, tensors = posted(panel)
    for strip, drawn in zip(content["strips"], axes_of(panel).values(), strict=True):
        shades, values = (tensors[f"{strip['name']}_{what}"] for what in ("shades", "values"))
        low, high = strip["ends"]
        normal = shades <= content["shades"]
        assert values[normal].max() <= high * 1.0001 and shades[normal].max() <= content["shades"]
        order = values[normal].argsort()
        assert (shades[normal][order].int().diff() >= 0).all(), "a higher value has no lower shade"
        if strip["name"] == "ratio":
            assert shades[values.argmax() // values.shape[1]].max() == content["shades"]
            middle = values.log().sub(torch.tensor(low).log()) / torch.tensor(high / low).log()
            assert (middle * content["shades"] - shades).abs()[normal].max() < 0.51
        pixels = torch.from_numpy(drawn.images[0].get_array()[..., :3])
        same = shades == shades[0, 0]
        assert (pixels[same] - pixels[0, 0]).abs().max() < 0.02


def test_scales_that_are_logarithmic_say_so_and_name_their_ends_as_the_widget_does():
    panel, _, _, _ = run("healthy")
    strips = posted(panel)[0]["strips"]
    assert [strip["name"] for strip in strips if strip["log"]] == ["std", "gradient", "ratio"]
    assert panel.words["log"] == {"zh": "对数刻度", "en": "log scale"}
    bars = [axes for axes in panel.figure.axes if not axes.get_title("left")]
    for strip, bar in zip(strips, bars, strict=True):
        assert [text.get_text() for text in bar.texts] == ["log scale"] * strip["log"]
        assert [label.get_text() for label in bar.get_yticklabels()] == [short(end) for end in strip["ends"]]
    values = (0, 1, -0.1349, 0.00031, 309.6, 999_999, 3.06e-5, 3.0e7)
    assert [short(value) for value in values] == ["0", "1", "-0.13", "0.00031", "310", "1e6", "3.1e-5", "3e7"]


def test_what_is_missing_zero_or_nan_has_a_colour_and_is_reported():
    panel, _, _, _ = run("detached_branch")
    assert "没有梯度到达" in says(panel)["zh"] and "No gradient arrives at" in says(panel)["en"]
    assert "stand still" in says(panel)["en"]
    gradient = axes_of(panel)["norm of the gradient at the output"].images[0].get_array()
    ratio = axes_of(panel)["update ratio"].images[0].get_array()
    grey, black = [208 / 255] * 3, [0.0] * 3
    assert any(all(abs(pixel[:3] - grey) < 0.01) for pixel in gradient[:, 0])
    assert any(all(pixel[:3] == black) for pixel in ratio[:, 0])
    content, tensors = posted(panel)
    none, zero, odd = (content["shades"] + n for n in (1, 2, 3))
    assert (tensors["gradient_shades"] == none).sum() == 3 * len(tensors["steps"])
    assert (tensors["ratio_shades"] == zero).sum() == 2 * len(tensors["steps"])
    panel, _, _, _ = run("bad_sample")
    assert panel.source is not None and f"sample {panel.source.sample}" in says(panel)["en"]
    mean = axes_of(panel)["activation: mean"].images[0].get_array()
    assert all(abs(mean[-1, -1][:3] - [230 / 255, 0, 230 / 255]) < 0.01)
    _, tensors = posted(panel)
    assert tensors["mean_shades"][-1, -1] == odd and tensors["mean_values"][-1, -1].isnan()


def test_a_fault_is_reported_with_the_step_since_which_it_lasts():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with TrainingPanel(model, optimizer) as panel:
        for step in range(9):
            model[0].bias.data.fill_(-100 if step in (3, 6, 7, 8) else 0)
            model[2].requires_grad_(step < 5)
            if step == 5:
                optimizer.param_groups[0]["lr"] = 0
            optimizer.zero_grad()
            model(torch.rand(16, 4)).square().mean().backward()
            optimizer.step()
    assert "stand still in `0`, `2` from step 5 on." in says(panel)["en"]
    assert "参数不动：`0`, `2`（第 5 步起）。" in says(panel)["zh"]
    assert "never positive in `1` from step 6 on." in says(panel)["en"], "and not since step 3"


def test_dead_units_are_said():
    panel, _, _, _ = run("dying_relus")
    assert "More than half of the units" in says(panel)["en"]


def test_losses_are_noted_before_or_after_the_step_and_drawn():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    panel = TrainingPanel(model, optimizer)
    with panel:
        for step in range(4):
            loss = model(torch.ones(1, 2)).square().sum()
            loss.backward()
            if step == 1:
                panel.note(loss)
            optimizer.step()
            if step == 3:
                panel.note(0.25)
    assert list(panel.noted) == [1, 3] and panel.noted[3] == 0.25
    content, tensors = posted(panel)
    assert tensors["noted"].tolist() == [0, 1, 0, 1] and tensors["losses"][3] == 0.25
    assert axes_of(panel)["loss"].lines[0].get_xdata().tolist() == [1, 3]
    assert "loss" not in axes_of(run("healthy")[0])
    with panel:
        pass
    assert panel.noted == {}
    content, _ = posted(panel)
    assert content["strips"] == [] and "with panel" in says(panel)["en"]


def test_a_long_run_is_shown_in_as_many_columns_as_a_screen_has(monkeypatch):
    monkeypatch.setattr(training_panel, "_COLUMNS", 10)
    model = nn.Linear(2, 1)
    panel = TrainingPanel(model, optimizer := torch.optim.SGD(model.parameters(), lr=0.1))
    with panel:
        for _ in range(36):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    content, tensors = posted(panel)
    assert content["every"] == 4 and tensors["steps"].tolist() == [*range(0, 36, 4), 35]
    assert len(panel.rows) == 36
    assert axes_of(panel)["update ratio"].images[0].get_array().shape[1] == 36


def test_updates_come_while_it_trains_but_not_after_every_step(monkeypatch):
    shown = []

    def noted(rows, steps):
        shown.append(steps[-1])
        return strips_of(rows, steps)

    monkeypatch.setattr(training_panel, "strips_of", noted)
    monkeypatch.setattr(training_panel, "_PAUSE", 0.0)
    monkeypatch.setattr(training_panel, "_SHARE", 0.5)
    _, patient, _, _ = run("healthy")
    last = len(patient.data) - 1
    assert shown[-1] == last and len(set(shown)) > 1
    shown.clear()
    monkeypatch.setattr(training_panel, "_PAUSE", 1000.0)
    run("healthy")
    assert shown == [last]


def test_an_exception_is_shown_and_training_goes_on(monkeypatch):
    def fail(rows, steps):
        raise ValueError("no ink")

    monkeypatch.setattr(training_panel, "strips_of", fail)
    monkeypatch.setattr(training_panel, "_PAUSE", 0.0)
    panel, patient, model, optimizer = run("healthy")
    assert isinstance(panel.error, ValueError) and panel.failure["error"] == "ValueError: no ink"
    assert "training has gone on" in panel.words[panel.failure["says"]]["en"]
    assert len({row.step for row in panel.rows}) == len(patient.data)
    monkeypatch.undo()
    with panel:
        train(model, optimizer, patient.data[:2])
    assert panel.error is None and panel.failure == {}


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
    assert panel.figure is None and panel.rows == [] and panel.noted == {}
    with pytest.raises(RuntimeError, match="closed"), panel:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        panel.note(1.0)
    other = TrainingPanel(model, optimizer)
    other.losses = [1.0]  # as lesson 15 does
    closes(other)


def test_a_notebook_keeps_a_still_picture_and_little_else():
    panel, patient, _, _ = run("healthy")
    layers = list(dict.fromkeys(row.layer for row in panel.rows))
    drawn = axes_of(panel)["norm of the gradient at the output"]
    assert [label.get_text() for label in drawn.get_yticklabels()] == layers
    assert drawn.images[0].get_array().shape[:2] == (len(layers), len(patient.data))
    bundle, metadata = panel._repr_mimebundle_()
    still = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    assert still.width == 2000
    assert metadata == {"image/png": {"width": 1000}}  # of the page, half as many as it has
    assert "application/vnd.jupyter.widget-view+json" in bundle and bundle["text/plain"] == "TrainingPanel()"
    assert "image/png" not in TrainingPanel(*admit(0, "healthy").build())._repr_mimebundle_()[0]
    state = {key: value for key, value in panel.get_state().items() if key not in ("_esm", "_css")}
    assert len(str(state)) < 10_000


def test_what_it_says_of_hundreds_of_layers_is_short():
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(300)))
    panel = TrainingPanel(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with panel:
        model(torch.ones(1, 1))
    assert "(+292)" in says(panel)["zh"] and len(says(panel)["en"]) < 300


def test_a_model_that_is_one_layer_without_any_gradient():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    panel = TrainingPanel(model, optimizer)
    with panel:
        model(torch.zeros(1, 2))
    assert [row.layer for row in panel.rows] == [""] and panel.error is None
    assert "(model)" in says(panel)["en"] and panel.figure is not None
    assert posted(panel)[0]["layers"] == ["(model)"]


def test_the_model_may_be_copied_and_saved_while_it_is_watched():
    import copy
    import io

    model = torch.nn.Sequential(torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with TrainingPanel(model, optimizer) as panel:
        best = copy.deepcopy(model)
        torch.save(model, file := io.BytesIO())
        file.seek(0)
        for copied in (best, torch.load(file, weights_only=False)):
            copied(torch.ones(1, 3)).sum().backward()
        assert panel.rows == []
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    assert [row.layer for row in panel.rows] == ["0"]
    panel.close()


def test_no_text_of_the_still_picture_is_too_small_or_covers_another():
    panel, _, _, _ = run("healthy")
    figure = panel.figure
    figure.canvas.draw()
    texts = [t for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
    assert len(texts) > 20 and all(text.get_fontsize() >= 7 for text in texts)
    for ax in figure.axes:
        boxes = [label.get_window_extent() for label in ax.get_yticklabels() if label.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
