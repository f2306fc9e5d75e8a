"""Several widgets in one notebook, saved by a real JupyterLab."""

import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import Locator, expect

SETUP = """\
import torch
from torch import nn
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
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "timeline": "steps = HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))\nsteps",
    "panel": PANEL,
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
