"""Tests of the widgets in a real JupyterLab, with mouse, keyboard and screen reader names."""

import io
import re
import subprocess
import sys

import nbformat
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

SETUP = """\
import torch
from torch import nn
import time
from hookedu import HookInspector, HookTimeline, LanguageToggle, LayerPicker, TrainingPanel

torch.manual_seed(0)
model = nn.Sequential()
model.add_module("conv1", nn.Conv2d(3, 8, 3, padding=1))
model.add_module("relu1", nn.ReLU())
model.add_module("conv2", nn.Conv2d(8, 100, 3, padding=1))
model.add_module("relu2", nn.ReLU())
model.add_module("pool", nn.AdaptiveAvgPool2d(1))
model.add_module("flat", nn.Flatten())
model.add_module("fc", nn.Linear(100, 5))
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij"))
disc = (grid.square().sum(0) < 0.4).float()
x = torch.stack([torch.stack([disc, grid[0] / 2, grid[1] / 2]), torch.stack([grid[1], disc, disc])])
images = {"disc": x[:1], "too small": torch.zeros(1, 5, 2, 2)}"""
INSPECTED = """\
def look(module, args, output):
    print(output.shape)

watched = nn.Sequential(nn.Linear(2, 2))
first = watched[0].register_forward_hook(look)
second = watched[0].register_forward_hook(look)
HookInspector(watched)"""
PANEL = """\
trained = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
panel = TrainingPanel(trained, optimizer)
panel"""
TRAIN = """\
end = time.monotonic() + 2  # long enough for several pictures
with panel:
    while time.monotonic() < end:
        optimizer.zero_grad()
        trained(torch.randn(16, 4)).square().mean().backward()
        optimizer.step()"""
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "picker": "picker = LayerPicker(model, x, images=images)\npicker",
    "timeline": "steps = HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))\nsteps",
    "panel": PANEL,
    "train": TRAIN,
    "inspector": INSPECTED,
    "after": "print(len(watched[0]._forward_hooks))",
}


@pytest.fixture(scope="module")
def notebook(open_notebook, tmp_path_factory):
    """Open a notebook with these cells and run it."""
    cells = [nbformat.v4.new_code_cell(code, id=name) for name, code in CELLS.items()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path_factory.mktemp("widgets") / "widgets.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    notebook = open_notebook(path)
    notebook.run_all()
    return notebook


@pytest.fixture
def fresh(notebook):
    """Return a function that reruns a cell: its widget is in its initial state, in both languages."""

    def run(name: str) -> Locator:
        language(notebook, "双语 · Both")
        notebook.run(name)
        notebook.scroll_to(name)
        return notebook.cell(name)

    yield run
    assert notebook.cell_errors() == []
    assert notebook.console_errors == []


def language(notebook, name: str) -> None:
    """Press a button of LanguageToggle."""
    notebook.choose({"中文": "zh", "English": "en", "双语 · Both": "both"}[name])


class Shown:
    """The picture of a widget on the page."""

    def __init__(self, widget: Locator):
        self.image = widget.locator("img")
        self.seen = None

    def next(self) -> bytes:
        """Wait for the next picture and return its screenshot, which must not be blank."""
        expect(self.image).to_be_visible()
        self.image.page.wait_for_function(
            "([image, seen]) => image.src !== seen && image.complete && image.naturalWidth > 0",
            arg=[self.image.element_handle(), self.seen],
        )
        self.seen = self.image.get_attribute("src")
        picture = self.image.screenshot()
        assert colours(picture)
        return picture


def colours(picture: bytes) -> bool:
    """Check whether a picture has more than 20 colours, that is, is not blank."""
    return len(Image.open(io.BytesIO(picture)).convert("RGB").getcolors(1 << 24)) > 20


def test_pick_a_layer(notebook, fresh, theme):
    notebook.use(theme)
    cell = fresh("picker")
    shown = Shown(cell)
    pictures = {"opened": shown.next()}
    layers = cell.locator("select").first
    cell.get_by_label("Search layers").fill("conv")
    expect(layers.locator("option")).to_have_count(2)
    if theme == "light":
        notebook.picture("layer-picker", cell)
    layers.select_option(index=1)
    pictures["conv2"] = shown.next()
    cell.get_by_label("Page of channels").fill("1")
    cell.get_by_label("Page of channels").press("Enter")
    pictures["page 1"] = shown.next()
    cell.get_by_role("button", name="80", exact=True).click()
    pictures["channel"] = shown.next()
    expect(cell.get_by_role("img")).to_have_accessible_name(re.compile("Feature maps: conv2 .* ch 80"))
    for view in ("Gradients", "Statistics", "Weights"):
        cell.get_by_role("button", name=view).click()
        pictures[view] = shown.next()
    cell.get_by_label("Input channel").fill("3")
    cell.get_by_label("Input channel").press("Enter")
    pictures["input channel"] = shown.next()
    assert len(set(pictures.values())) == len(pictures)
    cell.get_by_role("button", name="Show code").click()
    expect(cell.locator(".hookedu-code pre")).to_contain_text("weight.detach().transpose(0, 1)[3, 0:64]")
    language(notebook, "English")
    expect(cell.get_by_role("button", name="Gradients", exact=True)).to_be_visible()
    language(notebook, "中文")
    expect(cell.get_by_role("button", name="梯度", exact=True)).to_be_visible()
    expect(cell.get_by_label("输入通道")).to_be_visible()
    expect(cell.get_by_text("Values shown")).to_have_count(0)
    language(notebook, "双语 · Both")
    expect(cell.get_by_role("button", name="梯度 · Gradients", exact=True)).to_be_visible()
    readable(notebook)
    named(cell)


def test_of_two_fast_clicks_the_last_wins(fresh):
    cell = fresh("picker")
    shown = Shown(cell)
    shown.next()
    cell.locator("button").evaluate_all(
        "buttons => ['2', '5'].forEach(name => buttons.find(b => b.innerText === name).click())"
    )
    shown.next()
    expect(cell.get_by_role("img")).to_have_accessible_name(re.compile("ch 5"))
    expect(cell.locator("button.mod-active", has_text=re.compile("^5$"))).to_have_count(1)


def test_an_error_is_shown_and_the_widget_goes_on(notebook, fresh, theme):
    notebook.use(theme)
    cell = fresh("picker")
    shown = Shown(cell)
    shown.next()
    cell.get_by_label("Input", exact=False).first.select_option(label="images['too small']")
    expect(cell.get_by_role("alert")).to_contain_text("RuntimeError")
    expect(cell.get_by_text("Running or drawing raised an exception")).to_be_visible()
    expect(cell.get_by_text("运行或绘图时出现异常")).to_be_visible()
    expect(cell.locator("img")).not_to_be_visible()
    readable(notebook)
    cell.get_by_label("Input", exact=False).first.select_option(label="images['disc']")
    shown.next()
    expect(cell.get_by_role("alert")).not_to_be_visible()


def test_step_to_the_end_and_predict(notebook, fresh, theme):
    notebook.use(theme)
    cell = fresh("timeline")
    lit = cell.locator(".hookedu-lit")
    expect(lit).to_contain_text("forward_pre")
    steps, pictures = [lit.inner_text()], [cell.screenshot()]
    forward = cell.get_by_role("button", name="下一个 · Next")
    number = 1
    while forward.is_enabled():
        number += 1
        forward.click()
        expect(cell.get_by_text(f"{number} / ").first).to_be_visible()
        steps.append(lit.inner_text())
        if number == 12 and theme == "light":
            notebook.picture("hook-timeline", cell)
    pictures.append(cell.screenshot())
    assert len(steps) > 25 and len(set(steps)) > 15
    assert "post_accumulate" in " ".join(steps)
    cell.get_by_role("button", name="播放 · Play").click()  # at the end, so it starts over
    expect(cell.get_by_text("2 / ").first).to_be_visible()
    cell.get_by_role("button", name="Predict").click()
    answers = cell.locator(".hookedu-answers button")
    expect(answers).to_have_count(4)
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Choose an answer first")).to_be_visible()
    cell.get_by_role("button", name="forward_pre · 0 (Linear)").click()
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Score: 1 / 1")).to_be_visible()
    cell.get_by_role("button", name="forward · 0 (Linear)").wait_for()
    wrong = [a for a in range(4) if "forward · 0 " not in answers.nth(a).inner_text()]
    answers.nth(wrong[0]).click()
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Score: 1 / 2")).to_be_visible()
    pictures.append(cell.screenshot())
    assert len(set(pictures)) == 3 and all(map(colours, pictures))
    language(notebook, "English")
    expect(cell.get_by_role("button", name="Reveal")).to_be_visible()
    expect(cell.get_by_role("button", name="揭晓")).to_have_count(0)
    expect(cell.get_by_text("得分")).to_have_count(0)
    readable(notebook)
    named(cell)


def test_take_a_hook_off(notebook, fresh, theme):
    notebook.use(theme)
    cell = fresh("inspector")
    hooks = cell.locator("select option")
    expect(hooks).to_have_count(2)
    expect(cell.get_by_text("is registered 2 times")).to_be_visible()
    expect(cell.locator("pre")).to_contain_text("print(output.shape)")
    expect(cell.get_by_text(re.compile(r"defined at In\[\d+\]:1$"))).to_be_visible()
    if theme == "light":
        notebook.picture("hook-inspector", cell)
    pictures = [cell.screenshot()]
    cell.get_by_role("button", name="Remove this hook").click()
    expect(hooks).to_have_count(1)
    expect(cell.get_by_text("has been removed")).to_be_visible()
    pictures.append(cell.screenshot())
    assert len(set(pictures)) == 2 and all(map(colours, pictures))
    assert notebook.run("after").inner_text().strip() == "1"
    notebook.type_into("after", "second.remove()")
    notebook.run("after")
    expect(hooks).to_have_count(0)  # the table is live
    notebook.type_into("after", CELLS["after"])
    language(notebook, "中文")
    expect(cell.get_by_role("button", name="移除这个钩子")).to_be_visible()
    expect(cell.get_by_role("button", name="Remove")).to_have_count(0)
    expect(cell.get_by_text("The model has no hook")).to_have_count(0)
    readable(notebook)
    named(cell)


class TestTheKeyboardAloneIsEnough:
    """Shift+Enter runs the cell, Escape and ArrowUp return to it, and Tab moves on from there."""

    @pytest.fixture
    def enter(self, notebook, fresh):
        def enter(name: str) -> Locator:
            cell = fresh(name)
            for key in ("Escape", "ArrowUp"):
                notebook.page.keyboard.press(key)
            expect(cell).to_have_class(re.compile("jp-mod-selected"))
            return cell

        return enter

    def test_for_the_picker(self, notebook, enter):
        cell = enter("picker")
        shown, keyboard = Shown(cell), notebook.page.keyboard
        shown.next()
        tab_to(notebook, "Search layers")
        keyboard.type("conv")
        expect(cell.locator("select").first.locator("option")).to_have_count(2)
        for name, key in (
            ("Next", "Enter"),
            ("Gradients", "Enter"),
            ("Page of channels", "ArrowUp"),
            ("80", " "),
        ):
            tab_to(notebook, name)
            keyboard.press(key)
            shown.next()
        expect(cell.locator("option:checked").first).to_contain_text("conv2")

    def test_for_the_timeline(self, notebook, enter):
        cell, keyboard = enter("timeline"), notebook.page.keyboard
        expect(cell.get_by_text("1 / 30").first).to_be_visible()
        for name, key, seen in (
            ("Next", "Enter", "2 / 30"),
            ("Next", "Enter", "3 / 30"),
            ("Back", "Enter", "2 / 30"),
            ("slider", "ArrowRight", "3 / 30"),
            ("slider", "End", "30 / 30"),
            ("Predict", "Enter", "1 / 30"),
            ("forward_pre · 0 (Linear)", "Enter", "1 / 30"),
            ("Reveal", "Enter", "Score: 1 / 1"),
        ):
            tab_to(notebook, name, "Shift+Tab" if name in ("Back", "Predict") else "Tab")
            keyboard.press(key)
            expect(cell.get_by_text(seen).first).to_be_visible()

    def test_for_the_inspector(self, notebook, enter):
        cell, keyboard = enter("inspector"), notebook.page.keyboard
        expect(cell.locator("option")).to_have_count(2)
        tab_to(notebook, "Next")
        keyboard.press("Enter")
        expect(cell.get_by_text("number 1 there")).to_be_visible()
        for left in (1, 0):
            tab_to(notebook, "Remove this hook")
            keyboard.press("Enter")
            expect(cell.locator("option")).to_have_count(left)


def test_a_saved_notebook_has_no_widget_state_and_passes_nbval(notebook, fresh, tmp_path):
    for name in ("picker", "timeline", "panel", "inspector", "after"):
        fresh(name)
    notebook.page.keyboard.press("Control+s")
    expect(notebook.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = nbformat.read(notebook.path, 4)
    assert "widgets" not in saved.metadata and notebook.path.stat().st_size < 10_000
    said = [output.data["text/plain"] for cell in saved.cells for output in cell.outputs if "data" in output]
    assert said[1:] == ["LayerPicker()", "HookTimeline()", "TrainingPanel()", "HookInspector()"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval", notebook.path]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert f"{len(saved.cells)} passed" in ran.stdout, ran.stdout + ran.stderr


def tab_to(page, name: str, key: str = "Tab") -> None:
    """Press Tab until the accessible name of the focused element contains these words."""
    for _ in range(40):
        if name in focused(page):
            return
        page.page.keyboard.press(key)
    raise AssertionError(f"{key} does not reach {name!r}")


def focused(page) -> str:
    """Return the accessible name of the focused element, or its role if it has no name."""
    return page.page.evaluate("""() => {
      const e = document.activeElement;
      const name = e.labels?.[0]?.innerText || (e.tagName === 'BUTTON' ? e.innerText : '');
      return name || e.getAttribute('role') || '';
    }""")


def named(cell: Locator) -> None:
    """Check that every control has an accessible name, and that selection is shown by more than colour."""
    # Sliders are not listed: ipywidgets gives their handle no name, and the buttons next to them do the same.
    controls = re.findall(
        r"^ *- '?(button|textbox|spinbutton|checkbox|combobox|listbox|img)\b(.*)",
        cell.locator(".jp-Cell-outputArea").aria_snapshot(),
        re.M,
    )
    assert len(controls) > 4
    assert [(role, name) for role, name in controls if not re.match(r' ".*\w', name)] == []
    looks = "buttons => buttons.map(b => getComputedStyle(b).textDecorationLine)"
    assert set(cell.locator("button.mod-active").evaluate_all(looks)) <= {"underline"}
    assert set(cell.locator("button:not(.mod-active)").evaluate_all(looks)) == {"none"}


def readable(page) -> None:
    """Check that every text of a widget has sufficient contrast in this theme."""
    found = page.contrasts(".hookedu-widget")
    assert len(found) > 5
    assert [(round(ratio, 1), text) for ratio, text in found if ratio < 4.5] == []


def test_strips_grow_while_a_model_trains(notebook, fresh, theme):
    notebook.use(theme)
    cell = fresh("panel")
    expect(cell.get_by_text("put the training loop inside")).to_be_visible()
    notebook.page.evaluate(
        """cell => {
          window.pictures = new Set();
          const note = () => cell.querySelectorAll('img').forEach(image => window.pictures.add(image.src));
          new MutationObserver(note).observe(cell, {attributes: true, childList: true, subtree: true});
        }""",
        cell.element_handle(),
    )
    shown = Shown(cell)
    notebook.run("train")
    notebook.scroll_to("panel")
    shown.next()
    assert notebook.page.evaluate("window.pictures.size") > 2  # before the last one, too
    expect(cell.get_by_role("img")).to_have_accessible_name(re.compile("A strip per statistic"))
    expect(cell.get_by_text(re.compile(r"\d+ steps, 3 layers"))).to_be_visible()
    cell.locator("summary").click()
    expect(cell.locator("table tr")).to_have_count(4)
    language(notebook, "English")
    expect(cell.get_by_text("层")).to_have_count(0)
    language(notebook, "双语 · Both")
