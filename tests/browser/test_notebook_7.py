"""Every widget in Jupyter Notebook 7, whose commands see a key before a widget does."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab import notebook_7
from tests.browser.notebook import write_cells
from tests.browser.test_grad_cam_playground import drag, logits, shape
from tests.browser.test_gradient_flow import box, sees
from tests.browser.test_hook_timeline import at, firing
from tests.browser.test_layer_picker import canvas, layer, point, shows
from tests.browser.test_live_widgets import FIRST, fresh
from tests.browser.test_wheel import NOTEBOOK_7S_OWN

CELLS = {
    "setup": """\
import torch
from torch import nn
from hookedu import GradCamPlayground, GradientFlow, HookInspector, HookTimeline, LanguageToggle, LayerPicker
from hookedu import TrainingPanel, guess
from hookedu.models.shapes import CLASSES, draw_shapes, load_model

torch.manual_seed(0)
small = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
handle = small[0].register_forward_hook(lambda *_: None)
a, b = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))
c = a + b
shapes = [("cross", 18, 32), ("star", 46, 32)]""",
    "toggle": "LanguageToggle()",
    "picker": "LayerPicker(load_model(), torch.rand(1, 3, 64, 64))",
    "flow": "GradientFlow(c, {'a': a, 'b': b, 'c': c})",
    "timeline": "HookTimeline(small, torch.ones(1, 2))",
    "inspector": "HookInspector(small)",
    "playground": "GradCamPlayground(load_model(), 'block4', draw_shapes, CLASSES, shapes=shapes)",
    "panel": "optimizer = torch.optim.SGD(small.parameters(), lr=0.1)\npanel = TrainingPanel(small, optimizer)\npanel",
    "train": """\
with panel:
    for _ in range(30):
        optimizer.zero_grad()
        loss = small(torch.randn(4, 2)).square().mean()
        loss.backward()
        optimizer.step()
        panel.note(loss)""",
    "02-cell-03-guess": "guess('02.a')",
    "02-cell-03": FIRST,
    "hooks": "print(len(small[0]._forward_hooks))",
    "last": "None",  # it never runs alone: Notebook 7 would add one below
}


@pytest.fixture(scope="module")
def notebook(browser, tmp_path_factory):
    with notebook_7(tmp_path_factory.mktemp("classic")) as classic:
        write_cells(classic.folder / "widgets.ipynb", CELLS)
        notebook = classic.visit("widgets.ipynb", browser)
        notebook.run_all()
        yield notebook
        notebook.page.close()


@pytest.fixture(autouse=True)
def no_errors(notebook):
    notebook.choose("en")
    yield
    assert notebook.cell_errors() == []
    assert [error for error in notebook.console_errors if error != NOTEBOOK_7S_OWN] == []
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(CELLS))  # no key has reached it


def test_layers_are_picked_pointed_at_and_enlarged(notebook):
    widget, press = fresh(notebook, "picker"), notebook.page.keyboard.press
    layer(widget, "block2.conv").click()
    shows(widget, "Feature maps: block2.conv")
    assert "ch 0" in point(widget, 20, 20)
    canvas(widget).focus()
    for key in ("ArrowRight", "d", "d", "Enter"):
        press(key)
    shows(widget, "block2.conv.*ch 1$")


def test_a_hook_is_hung_on_with_the_keyboard(notebook):
    widget, press = fresh(notebook, "flow"), notebook.page.keyboard.press
    box(widget, "a").focus()
    for key in ("Enter", "End", "ArrowLeft", "Enter"):
        press(key)
    expect(widget.get_by_role("status")).to_contain_text(
        "this gradient changed although you did not touch it"
    )
    sees(widget, ["grad 1 → 2", "⚠ grad 2 ≠ 1", "grad 1"])


def test_a_run_is_stepped_through(notebook):
    widget = fresh(notebook, "timeline")
    at(widget, 1)
    for number in (2, 3):
        widget.get_by_role("button", name="Next").click()
        at(widget, number)
    assert firing(widget) == "forward 0"


def test_a_hook_is_taken_off_and_put_back(notebook):
    widget = fresh(notebook, "inspector")
    widget.get_by_role("option").first.click()
    for name, left in (("Remove this hook", 0), ("Undo", 1)):
        widget.get_by_role("button", name=name).click()
        expect(widget.get_by_role("option")).to_have_count(left)
        assert notebook.run("hooks").inner_text().strip() == str(left)


def test_a_shape_is_dragged(notebook):
    widget = fresh(notebook, "playground")
    shape(widget, "cross").scroll_into_view_if_needed()
    before = logits(widget)
    drag(widget, shape(widget, "cross"), 4, -16)
    expect(shape(widget, "cross")).to_have_accessible_name("cross, column 22, row 16")
    expect(widget.locator(".hookedu-play-value").first).not_to_have_text(f"{before[0]:.1f}")


def test_strips_grow_and_a_step_is_pointed_at(notebook):
    widget = fresh(notebook, "panel")
    notebook.run("train")
    notebook.scroll_to("panel")
    charts = widget.get_by_role("application")
    expect(charts).to_have_count(6)
    charts.nth(1).focus()
    for key in ("End", "d", "d"):
        notebook.page.keyboard.press(key)
    expect(widget.locator(".hookedu-run-reading")).to_contain_text("tep 29")


def test_a_guess_is_made_and_told(notebook):
    widget, press = fresh(notebook, "02-cell-03-guess"), notebook.page.keyboard.press
    widget.get_by_role("radio").first.focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "a", "d", "d"):
        press(key)
    expect(widget.get_by_role("radio").nth(2)).to_be_checked()
    notebook.run("02-cell-03")
    expect(widget.get_by_role("status")).to_contain_text("You had it right")


def test_the_language_is_chosen(notebook):
    widget = fresh(notebook, "timeline")
    notebook.choose("zh")
    expect(widget.get_by_role("button", name="播放")).to_be_visible()
    expect(widget).not_to_contain_text(re.compile("forward pass|Registered|Click|per second"))
