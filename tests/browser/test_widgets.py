"""The widgets in a real JupyterLab, as a learner clicks, types and reads them."""

import io

import nbformat
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

SETUP = """\
import torch
from torch import nn
from hookedu import HookInspector, HookTimeline, LanguageToggle, LayerPicker

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

first = model.conv1.register_forward_hook(look)
second = model.conv1.register_forward_hook(look)
HookInspector(model)"""
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "picker": "picker = LayerPicker(model, x, images=images)\npicker",
    "timeline": "steps = HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))\nsteps",
    "inspector": INSPECTED,
    "after": "len(model.conv1._forward_hooks)",
}


@pytest.fixture
def notebook(open_notebook, tmp_path):
    """A notebook with these cells of `CELLS`, run and in both languages."""

    def open_(*names: str, theme: str = "light"):
        names = ("setup", "toggle", *names)
        cells = [nbformat.v4.new_code_cell(CELLS[name], id=name) for name in names]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path = tmp_path / "widgets.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
        notebook = open_notebook(path, theme)
        notebook.run_all()
        assert notebook.cell_errors() == []
        notebook.page.get_by_role("button", name="双语 · Both", exact=True).click()  # not what was remembered
        return notebook

    return open_


class Shown:
    """A widget's picture on the page."""

    def __init__(self, widget: Locator):
        self.image = widget.locator("img")
        self.seen = None

    def next(self) -> bytes:
        """The picture that follows the last one; it must not be blank."""
        expect(self.image).to_be_visible()
        self.image.page.wait_for_function(
            "([image, seen]) => image.src !== seen && image.complete && image.naturalWidth > 0",
            arg=[self.image.element_handle(), self.seen],
        )
        self.seen = self.image.get_attribute("src")
        picture = self.image.screenshot()
        colours = Image.open(io.BytesIO(picture)).convert("RGB").getcolors(1 << 24)
        assert len(colours) > 20
        return picture


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pick_a_layer(notebook, theme):
    page = notebook("picker", theme=theme)
    cell = page.cell("picker")
    page.scroll_to("picker")
    shown = Shown(cell)
    pictures = {"opened": shown.next()}
    layers = cell.locator("select").first
    cell.get_by_label("Search layers").fill("conv")
    expect(layers.locator("option")).to_have_count(2)
    layers.select_option(index=1)
    pictures["conv2"] = shown.next()
    cell.get_by_label("Page of channels").fill("1")
    cell.get_by_label("Page of channels").press("Enter")
    pictures["page 1"] = shown.next()
    page.picture(f"layer-picker-{theme}")
    cell.get_by_role("button", name="80", exact=True).click()
    pictures["channel"] = shown.next()
    page.picture(f"layer-picker-channel-{theme}")
    for view in ("Gradients", "Statistics", "Weights"):
        cell.get_by_role("button", name=view).click()
        pictures[view] = shown.next()
    cell.get_by_label("Input channel").fill("3")
    cell.get_by_label("Input channel").press("Enter")
    pictures["input channel"] = shown.next()
    assert len(set(pictures.values())) == len(pictures)
    cell.get_by_role("button", name="Show code").click()
    expect(cell.locator(".hookedu-code pre")).to_contain_text("weight.detach().transpose(0, 1)[3, 0:64]")
    page.page.get_by_role("button", name="English", exact=True).click()
    expect(cell.get_by_role("button", name="Gradients", exact=True)).to_be_visible()
    page.page.get_by_role("button", name="中文", exact=True).click()
    expect(cell.get_by_role("button", name="梯度", exact=True)).to_be_visible()
    expect(cell.get_by_label("输入通道")).to_be_visible()
    expect(cell.get_by_text("Values shown")).to_have_count(0)
    page.picture(f"layer-picker-code-{theme}")
    readable(page)
    page.page.get_by_role("button", name="双语 · Both", exact=True).click()
    expect(cell.get_by_role("button", name="梯度 · Gradients", exact=True)).to_be_visible()
    assert page.console_errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_step_to_the_end_and_predict(notebook, theme):
    page = notebook("timeline", theme=theme)
    cell = page.cell("timeline")
    page.scroll_to("timeline")
    lit = cell.locator(".hookedu-lit")
    expect(lit).to_contain_text("forward_pre")
    steps = [lit.inner_text()]
    forward = cell.get_by_role("button", name="下一个 · Next")
    page.picture(f"timeline-{theme}")
    for number in range(2, 100):
        if forward.is_disabled():
            break
        forward.click()
        expect(cell.get_by_text(f"{number} / ").first).to_be_visible()
        steps.append(lit.inner_text())
    assert len(steps) > 25 and len(set(steps)) > 15
    assert "post_accumulate" in " ".join(steps)
    cell.get_by_role("button", name="Predict").click()
    answers = cell.get_by_role("radio")
    expect(answers).to_have_count(4)
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Choose an answer first")).to_be_visible()
    cell.get_by_label("forward_pre · 0 (Linear)").check()
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Score: 1 / 1")).to_be_visible()
    cell.get_by_label("forward · 0 (Linear)").wait_for()
    wrong = [
        a
        for a in range(4)
        if "forward · 0 " not in cell.locator(".widget-radio-box label").nth(a).inner_text()
    ]
    answers.nth(wrong[0]).check()
    cell.get_by_role("button", name="Reveal").click()
    expect(cell.get_by_text("Score: 1 / 2")).to_be_visible()
    page.picture(f"timeline-predict-{theme}")
    readable(page)
    assert page.console_errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_take_a_hook_off(notebook, theme):
    page = notebook("inspector", "after", theme=theme)
    cell = page.cell("inspector")
    page.scroll_to("inspector")
    hooks = cell.locator("select option")
    expect(hooks).to_have_count(2)
    expect(cell.get_by_text("is registered 2 times")).to_be_visible()
    expect(cell.locator("pre")).to_contain_text("print(output.shape)")
    page.picture(f"inspector-{theme}")
    cell.get_by_role("button", name="Remove this hook").click()
    expect(hooks).to_have_count(1)
    expect(cell.get_by_text("has been removed")).to_be_visible()
    assert page.run("after").inner_text().strip().endswith("1")
    page.type_into("after", "second.remove()")
    page.run("after")
    expect(hooks).to_have_count(0)  # the table is live
    readable(page)
    assert page.console_errors == []


def test_an_error_is_shown_and_the_widget_goes_on(notebook):
    page = notebook("picker")
    cell = page.cell("picker")
    page.scroll_to("picker")
    shown = Shown(cell)
    shown.next()
    cell.get_by_label("Input", exact=False).first.select_option(label="images['too small']")
    expect(cell.get_by_role("alert")).to_contain_text("RuntimeError")
    expect(cell.get_by_text("Running or drawing raised an exception")).to_be_visible()
    expect(cell.get_by_text("运行或绘图时出现异常")).to_be_visible()
    expect(cell.locator("img")).not_to_be_visible()
    page.picture("error-light")
    readable(page)
    cell.get_by_label("Input", exact=False).first.select_option(label="images['disc']")
    shown.next()
    expect(cell.get_by_role("alert")).not_to_be_visible()
    assert page.console_errors == []


def test_the_keyboard_alone_is_enough(notebook):
    page = notebook("picker")
    cell = page.cell("picker")
    page.scroll_to("picker")
    shown = Shown(cell)
    shown.next()
    cell.get_by_label("Search layers").focus()
    keyboard = page.page.keyboard
    keyboard.type("conv")
    expect(cell.locator("select").first.locator("option")).to_have_count(2)
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    shown.next()
    assert "conv2" in focused(page)
    keyboard.press("Tab")  # feature maps
    keyboard.press("Tab")
    keyboard.press("Enter")
    shown.next()
    assert "Gradients" in focused(page)
    for _ in range(12):
        keyboard.press("Tab")
        if "Page of channels" in focused(page):
            break
    keyboard.press("ArrowUp")
    shown.next()
    assert page.console_errors == []


def focused(page) -> str:
    """What a screen reader would say of the element that has the keyboard."""
    return page.page.evaluate(
        "() => { const e = document.activeElement; return [e.selectedOptions?.[0]?.text, e.labels?.[0]?.innerText, e.innerText].join(' '); }"
    )


def readable(page) -> None:
    """Every text of a widget stands out from its ground, in this theme."""
    found = page.contrasts(".hookedu-widget")
    assert len(found) > 5
    assert [(round(ratio, 1), text) for ratio, text in found if ratio < 4.5] == []
