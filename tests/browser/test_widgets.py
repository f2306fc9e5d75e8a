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
from hookedu import HookInspector, HookTimeline, LanguageToggle, LayerPicker, TrainingPanel"""
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
    "timeline": "steps = HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))\nsteps",
    "panel": PANEL,
    "train": TRAIN,
    "inspector": INSPECTED,
    "after": "print(len(watched[0]._forward_hooks))",
}


@pytest.fixture
def fresh(notebook):
    """Return a function that reruns a cell: its widget is in its initial state, in both languages."""

    def run(name: str) -> Locator:
        notebook.choose("both")
        notebook.run(name)
        notebook.scroll_to(name)
        return notebook.cell(name)

    yield run
    assert notebook.cell_errors() == []
    assert notebook.console_errors == []


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


def test_a_saved_notebook_has_still_pictures_for_widget_state_and_passes_nbval(notebook, fresh, tmp_path):
    for name in ("timeline", "panel", "inspector", "after"):
        fresh(name)
    notebook.page.keyboard.press("Control+s")
    expect(notebook.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = nbformat.read(notebook.path, 4)
    assert "widgets" not in saved.metadata
    shown = [output.data for cell in saved.cells for output in cell.outputs if "data" in output]
    said = [data["text/plain"] for data in shown]
    assert said[1:] == ["HookTimeline()", "TrainingPanel()", "HookInspector()"]
    stills = [data.pop("image/png") for data in shown if "image/png" in data]
    assert stills and max(map(len, stills)) < 200_000 and len(nbformat.writes(saved)) < 10_000
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval", notebook.path]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert f"{len(saved.cells)} passed" in ran.stdout, ran.stdout + ran.stderr


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
    notebook.choose("en")
    expect(cell.get_by_text("层")).to_have_count(0)
    notebook.choose("both")
