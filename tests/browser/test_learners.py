"""What stopped people who tried the widgets for the first time, in a real JupyterLab."""

import io
import re

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.test_live_widgets import CHINESE, fresh

CELLS = {
    "setup": """\
import torch
from torch import nn
from hookedu import GradCamPlayground, GradientFlow, HookInspector, HookTimeline, LanguageToggle, LayerPicker
from hookedu.models.shapes import CLASSES, draw_shapes, load_model

small = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
for _ in range(2):
    small[0].register_forward_hook(print)
conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
a, b = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))
c = a + b""",
    "toggle": "LanguageToggle()",
    "vector": "LayerPicker(nn.Sequential(nn.Linear(2, 3)), torch.ones(1, 2))",
    "maps": "LayerPicker(conv, torch.rand(1, 3, 16, 16))",
    "flow": "GradientFlow(c, {'a': a, 'b': b, 'c': c})",
    "timeline": "HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))",
    "inspector": "HookInspector(small)",
    "playground": "GradCamPlayground(load_model(), 'block4', draw_shapes, CLASSES)",
    "refused": "GradCamPlayground(load_model(), 'head', draw_shapes, CLASSES)",
    "freed": "s = (torch.ones(2, requires_grad=True) ** 2).sum()\ns.backward()\nGradientFlow(s, {'s': s})",
}


@pytest.fixture(scope="module")
def notebook(open_cells):
    notebook = open_cells(CELLS)
    notebook.choose("en")
    return notebook


@pytest.fixture(autouse=True)
def no_errors(notebook):
    notebook.choose("en")
    yield
    assert notebook.cell_errors() == []
    assert notebook.console_errors == []


def press(widget: Locator, name: str) -> None:
    widget.get_by_role("button", name=name, exact=True).click()


def test_an_input_that_is_no_picture_is_no_error(notebook):
    widget = fresh(notebook, "vector")
    expect(widget.get_by_text("The 3 highest")).to_be_visible()
    expect(widget.get_by_role("alert")).to_have_count(0)
    expect(widget.get_by_text("Something went wrong")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_compared_is_saved_as_one_picture_on_the_ground_of_the_page(notebook, theme):
    notebook.use(theme)
    widget = fresh(notebook, "maps")
    expect(widget.locator(".hookedu-pane")).to_contain_text("Feature maps: 0")
    press(widget, "Pin")
    widget.locator("[data-key='1']").click()
    expect(widget.locator(".hookedu-pane").first).to_contain_text("Feature maps: 1")
    with notebook.page.expect_download() as download:
        press(widget, "Save as PNG")
    assert download.value.suggested_filename == "1-maps+0-maps.png"
    saved = Image.open(io.BytesIO(download.value.path().read_bytes())).convert("RGB")
    both = widget.locator(".hookedu-pane canvas:not([aria-hidden])").evaluate_all(
        "all => all.map(c => c.width)"
    )
    assert saved.width > sum(both)
    ground = notebook.page.locator(".jp-NotebookPanel").evaluate(
        "e => { const probe = document.createElement('i'); probe.style.color = 'var(--jp-layout-color1)'; e.append(probe);"
        " const said = getComputedStyle(probe).color; probe.remove(); return said; }"
    )
    assert saved.getpixel((1, 1)) == tuple(map(int, re.findall(r"\d+", ground)[:3]))
    notebook.use("light")


@pytest.mark.parametrize("cell", ["flow", "timeline"])
def test_tab_stops_only_at_what_has_a_name(notebook, cell):
    widget = fresh(notebook, cell)
    expect(widget.locator("svg [role=button]").first).to_be_visible()
    first = widget.locator("svg [role=button][tabindex='0']").first
    first.focus()
    notebook.page.keyboard.press("Shift+Tab")
    assert notebook.page.evaluate("document.activeElement.closest('svg') === null")


def test_a_wrong_guess_is_told_when_its_hook_fires(notebook):
    widget = fresh(notebook, "timeline")
    press(widget, "Predict")
    answers = widget.locator(".hookedu-run-answers button")
    expect(answers).to_have_count(4)
    wrong = next(answer for answer in answers.all() if "forward_pre · 0 " not in answer.inner_text())
    chosen = wrong.inner_text()
    wrong.click()
    said = widget.locator(".hookedu-run-verdict")
    expect(said).to_contain_text(re.compile(r"Yours fires later, as event \d+\."))
    number = int(re.findall(r"event (\d+)", said.inner_text())[0])
    reasons = "Backward begins only|fires only when everything|fires before the module|is called first|begins before what"
    expect(widget.get_by_role("status")).to_contain_text(re.compile(reasons))
    press(widget, "Watch")
    widget.get_by_role("slider").fill(str(number - 1))
    name = chosen.split(" (")[0]
    expect(widget.locator(".hookedu-model-cargo")).to_contain_text(name)
    expect(widget).to_contain_text("These hooks are the widget's own")
    notebook.choose("zh")
    expect(widget).to_contain_text("这些钩子是控件自己挂上的")


def test_two_hooks_of_one_function_can_be_told_apart(notebook):
    widget = fresh(notebook, "inspector")
    rows = widget.get_by_role("option")
    expect(rows).to_have_count(2)
    said = [row.inner_text().split() for row in rows.all()]
    assert [row[:1] + row[-1:] for row in said] == [["print", "0"], ["print", "1"]]


def test_the_playground_says_what_its_lines_are_and_what_is_off(notebook):
    widget = fresh(notebook, "playground")
    lines = widget.get_by_text("Upright lines: with all channels on")
    expect(widget.get_by_role("switch")).to_have_count(64)
    expect(lines).to_be_hidden()
    fifth = widget.get_by_role("switch", name=re.compile(r"^channel 5\b"))
    fifth.scroll_into_view_if_needed()
    place = fifth.bounding_box()
    fifth.click()
    expect(fifth).to_contain_text("off")
    expect(fifth).to_have_accessible_name(re.compile("^channel 5 is off; switched on, it contributes"))
    expect(lines).to_be_visible()
    assert fifth.bounding_box() == place  # nothing jumps under the hand


def test_an_exception_before_the_first_picture_says_what_to_do(notebook):
    failure = fresh(notebook, "refused").get_by_role("alert")
    expect(failure).to_contain_text("run this cell again")
    expect(failure).not_to_contain_text("move a shape")
    expect(failure).not_to_contain_text(CHINESE)
    notebook.choose("zh")
    expect(failure).to_contain_text("再运行这个单元格")


def test_the_text_of_an_exception_is_not_broken_within_words(notebook):
    pre = fresh(notebook, "freed").get_by_role("alert").locator("pre").first
    expect(pre).to_contain_text("RuntimeError")
    assert pre.evaluate("e => getComputedStyle(e).wordBreak") == "normal"
