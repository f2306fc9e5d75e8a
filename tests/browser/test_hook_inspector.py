"""HookInspector in a real JupyterLab: what is found, and hooks that are taken off and put back."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing
from tests.browser.test_live_widgets import CHINESE, fresh, named, readable

SETUP = """\
import ipywidgets, torch
from torch import nn
from hookedu import HookInspector, LanguageToggle"""
INSPECTED = """\
kept = []

def look(module, args, output):
    kept.append(output)

def cut(module, args, output):
    return output.detach()

model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
handles = [model[0].register_forward_hook(hook) for hook in (look, look, lambda module, args, output: None)]
handles.append(model[1].register_forward_hook(cut))
inspector = HookInspector(model)
inspector"""
pytestmark = pytest.mark.usefixtures("no_errors")
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "inspector": INSPECTED,
    "watched": "HookInspector(model, torch.ones(1, 2))",
    "broken": "HookInspector(model, torch.ones(1, 7))",
    "after": "print([hook.__qualname__ for hook in model[0]._forward_hooks.values()])",
    # Each inspector also listens to the cells that run.
    "census": "print(len(ipywidgets.widgets.widget._instances), len(get_ipython().events.callbacks['post_run_cell']))",
}
ALL = "['look', 'look', '<lambda>']"


def hooks(widget: Locator) -> Locator:
    return widget.get_by_role("option")


def button(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("button", name=name)


def on_the_model(notebook) -> str:
    return notebook.run("after").inner_text().strip()


def test_findings_are_lines_that_unfold_the_most_serious_first(notebook, theme):
    notebook.use(theme)
    widget = fresh(notebook, "watched")
    findings = widget.locator(".hookedu-findings li")
    expect(widget.get_by_text(re.compile(r"Diagnosis: \d findings$"))).to_be_visible()
    expect(findings.first).to_be_visible()
    severities = findings.evaluate_all("all => all.map(e => e.dataset.severity)")
    assert severities == sorted(severities, key=["serious", "warning", "minor"].index)
    assert set(severities) == {"serious", "warning", "minor"}
    lines = findings.locator("summary").evaluate_all("all => all.map(e => [e.offsetHeight, e.innerText])")
    assert len({height for height, _ in lines}) == 1 and lines[0][0] < 30  # one line each
    assert lines[0][1].split("\n")[0].split() == ["✖", "Serious"]
    first = findings.first
    expect(first.get_by_text("do not return a detached tensor")).to_be_hidden()
    first.locator("summary").focus()
    notebook.page.keyboard.press("Enter")
    expect(first.get_by_text("do not return a detached tensor")).to_be_visible()
    readable(notebook, widget)
    expect(widget).not_to_contain_text(CHINESE)
    notebook.page.keyboard.press("Tab")
    notebook.page.keyboard.press("Enter")  # to this hook
    expect(widget.locator("[aria-selected=true]")).to_contain_text("cut")
    expect(widget.locator("[aria-selected=true]")).to_be_focused()
    expect(widget.locator("pre")).to_contain_text("output.detach()")
    if theme == "light":
        notebook.picture("hook-inspector", notebook.cell("watched"))
    button(widget, "Run again").click()
    expect(first.get_by_text("do not return a detached tensor")).to_be_visible()  # still unfolded
    notebook.choose("zh")
    expect(first).to_contain_text("严重")
    if theme == "light":
        notebook.picture("hook-inspector.zh", notebook.cell("watched"))
    expect(widget).not_to_contain_text(re.compile("serious|finding|hook on|undo", re.IGNORECASE))
    readable(notebook, widget)


def test_taken_off_and_put_back_with_the_keyboard_alone(notebook, theme):
    notebook.use(theme)
    widget, keyboard = fresh(notebook, "inspector"), notebook.page.keyboard
    status = widget.locator(".hookedu-hooks-status")
    expect(hooks(widget)).to_have_count(4)
    expect(widget.get_by_text(re.compile(r"defined at In\[\d+\]:3$"))).to_be_visible()
    expect(button(widget, "Undo")).to_have_attribute("aria-disabled", "true")
    hooks(widget).first.focus()
    keyboard.press("ArrowDown")
    expect(widget.get_by_text("number 1 there")).to_be_visible()
    tab_to(notebook, "Remove this hook")
    for left in (3, 2):
        keyboard.press("Enter")
        expect(hooks(widget)).to_have_count(left)
        expect(button(widget, "Remove this hook")).to_be_focused()
    expect(status).to_contain_text("has been removed")
    expect(widget.get_by_text("is registered 2 times")).to_have_count(0)
    readable(notebook, widget)
    assert on_the_model(notebook) == "['look']"
    button(widget, "Remove this hook").focus()
    tab_to(notebook, "Undo")
    for back in (3, 4):
        keyboard.press("Enter")
        expect(hooks(widget)).to_have_count(back)
    expect(status).to_contain_text("is back on 0, where it was")
    expect(button(widget, "Undo")).to_be_focused()  # though there is nothing more to undo
    expect(button(widget, "Undo")).to_have_attribute("aria-disabled", "true")
    expect(widget.locator("[aria-selected=true]")).to_have_attribute("data-key", re.compile("forward 0$"))
    keyboard.press("Enter")
    assert on_the_model(notebook) == ALL


def test_it_says_so_when_the_hooks_there_have_changed_and_follows_the_cells(notebook):
    widget = fresh(notebook, "inspector")
    button(widget, "Remove this hook").click()
    expect(hooks(widget)).to_have_count(3)
    notebook.type_into("after", "handles[2].remove()")
    notebook.run("after")
    expect(hooks(widget)).to_have_count(2)  # without a click
    notebook.type_into("after", CELLS["after"])
    button(widget, "Undo").click()
    expect(widget.locator(".hookedu-hooks-status")).to_contain_text("was not put back")
    expect(hooks(widget)).to_have_count(2)
    notebook.choose("zh")
    expect(widget.locator(".hookedu-hooks-status")).to_contain_text("没有放回 look")
    for left in (1, 0):
        button(widget, "移除这个钩子").click()
        expect(hooks(widget)).to_have_count(left)
    expect(widget.get_by_text("模型上没有钩子")).to_be_visible()
    expect(widget.get_by_role("listbox")).to_be_hidden()
    readable(notebook, widget)


def test_a_search_and_a_hook_that_a_finding_leads_to(notebook):
    widget = fresh(notebook, "inspector")
    widget.get_by_label("Search hooks").fill("lambda")
    expect(hooks(widget)).to_have_count(1)
    expect(widget.locator(".hookedu-choices-count")).to_have_text("Live hooks: 1 of 4")
    twice = widget.locator("li", has_text="is registered 2 times")
    twice.locator("summary").click()
    button(twice, "Go to this hook").click()
    expect(hooks(widget)).to_have_count(4)
    expect(hooks(widget).first).to_be_focused()
    for _ in range(2):
        button(widget, "Remove this hook").click()
    expect(hooks(widget)).to_have_count(2)


def test_an_exception_of_the_model_is_shown_in_one_language_and_the_hooks_are_there(notebook):
    widget = fresh(notebook, "broken")
    expect(widget.get_by_role("alert")).to_contain_text("RuntimeError")
    expect(hooks(widget)).not_to_have_count(0)
    expect(widget.get_by_role("alert").locator("div").first).not_to_contain_text(CHINESE)
    readable(notebook, widget)


def test_in_high_contrast_severities_are_words(notebook):
    notebook.page.emulate_media(forced_colors="active")
    widget = fresh(notebook, "watched")
    expect(widget.locator(".hookedu-severity").first).to_be_visible()
    words = widget.locator(".hookedu-severity").all_inner_texts()
    assert {word.split()[-1] for word in words} <= {"Serious", "Warning", "Minor"} and words


def test_another_place_shows_the_same(notebook):
    widget = fresh(notebook, "inspector")
    hooks(widget).nth(1).click()
    notebook.type_into("census", "inspector")
    notebook.run("census")
    second = notebook.cell("census").locator(".hookedu-live")
    expect(hooks(second).nth(1)).to_have_attribute("aria-selected", "true")
    assert named(second) != named(widget)
    hooks(second).nth(3).click()
    expect(hooks(widget).nth(3)).to_have_attribute("aria-selected", "true")
    button(second, "Remove this hook").click()
    for place in (widget, second):
        expect(hooks(place)).to_have_count(3)
        expect(place.locator(".hookedu-hooks-status")).to_contain_text("cut on 1 has been removed")
    button(widget, "Undo").click()
    expect(hooks(second)).to_have_count(4)
    notebook.type_into("census", CELLS["census"])
    notebook.run("census")


def test_twenty_runs_leave_nothing(notebook):
    def shown(times: int) -> str:
        for _ in range(times):
            widget = fresh(notebook, "inspector")
            hooks(widget).nth(2).click()
            expect(hooks(widget).nth(2)).to_have_attribute("aria-selected", "true")
        return notebook.run("census").inner_text()

    leaves_nothing(notebook, shown)


def tab_to(notebook, name: str) -> None:
    """Press Tab until an element with this text has the focus."""
    for _ in range(15):
        if notebook.page.evaluate("document.activeElement.innerText") == name:
            return
        notebook.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {name!r}")
