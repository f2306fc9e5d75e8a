"""What all widgets with a module in the browser promise, on one made for this test and on guess(), in a real JupyterLab."""

import contextlib
import json
import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing

CHINESE = re.compile("[\u4e00-\u9fff]")
SETUP = """\
import torch
from torch import nn
from hookedu import LanguageToggle, Text, guess, progress
from hookedu.widgets.live import LiveWidget
from hookedu.widgets.modules import join
import ipywidgets, traitlets"""
# Buttons that fail here and in Python, three tensors, an animation, a group of buttons for the arrow keys, a canvas.
MODULE = """
import { element } from "./elements.js";
import { pixels, fit, enlarge } from "./drawing.js";
import { widget } from "./shared.js";

export default widget((view) => {
  const group = element("div", { role: "group", "aria-label": "numbers" });
  for (const name of ["one", "two", "three", "four"]) group.append(element("button", {}, name));
  const here = view.label(element("button", { class: "here" }), "here");
  const there = view.label(element("button", { class: "there" }), "there");
  const said = element("output", { class: "said" });
  const frames = element("output", { class: "frames" });
  const canvas = element("canvas", { role: "img", "aria-label": "numbers" });
  view.body.append(group, here, there, said, frames, canvas);
  view.rove(group, { columns: () => 2, moved: (item) => view.announce("moved", { to: item.textContent }) });
  let failing = false;
  view.on(here, "click", () => {
    failing = !failing;
    if (failing) throw new TypeError("broken in the page");
  });
  view.on(there, "click", () => view.send("fail"));
  let count = 0;
  view.animate(300, (time) => { frames.textContent = `${++count} ${time}`; });
  view.receive("numbers", (content, { floats, ints, flags }) => {
    const parts = [floats, ints, flags].map((t) => `${t.values.constructor.name} ${t.shape} ${[...t.values]}`);
    said.textContent = [content.title, ...parts].join(" | ");
    view.painted(() => {
      const context = fit(canvas, 40, 20);
      enlarge(context, pixels(floats.values, 2, { map: "viridis", low: 0, high: 1 }), 0, 0, 40, 20);
    });
  });
});
"""
TRIAL = f"""\
class Trial(LiveWidget):
    _esm = join({MODULE!r})
    _css = ""
    WORDS = {{"here": Text(zh="这里坏", en="Fail here"), "there": Text(zh="那里坏", en="Fail there"),
             "moved": Text(zh="到了 {{to}}", en="now at {{to}}")}}
    wanted = False

    def _heard(self, kind, message, buffers):
        self.wanted = True
        self.changed()

    def _update(self):
        if self.wanted:
            self.wanted = False
            if self.error is None:
                raise ValueError("broken in Python")
            self._no_error()

trial = Trial()
trial.post("numbers", {{"title": "three"}}, floats=torch.tensor([[0.0, float("nan")], [0.5, 1.0]], dtype=torch.float64),
           ints=torch.tensor([1, -2]), flags=torch.tensor([True, False, True]))
trial"""
FIRST = "x = torch.full((4,), 2.0, requires_grad=True)\ny = x**2\ny.mean().backward()"
pytestmark = pytest.mark.usefixtures("no_errors")
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "trial": TRIAL,
    "again": "trial",
    "02-cell-03-guess": 'guess("02.a")',
    "02-cell-03": FIRST,
    "02-cell-07-guess": 'guess("02.b")',
    "between": "seen = {}",
    "02-cell-07": 'seen = {"a": torch.tensor(2.0)}',
    "progress": "progress()",
    "census": "len(ipywidgets.widgets.widget._instances), len(get_ipython().events.callbacks['post_run_cell'])",
}


def fresh(notebook, name: str) -> Locator:
    """Run a cell again and return its widget."""
    notebook.run(name)
    notebook.scroll_to(name)
    widget = notebook.cell(name).locator(".hookedu-live")
    expect(widget).to_have_count(1)
    return widget


# -- what all have in common ----------------------------------------------------------------------------------------


def test_numbers_arrive_in_every_place_that_shows_the_widget(notebook):
    for place in (fresh(notebook, "trial"), fresh(notebook, "again")):
        expect(place.locator(".said")).to_have_text(
            "three | Float32Array 2,2 0,NaN,0.5,1 | Int32Array 2 1,-2 | Uint8Array 3 1,0,1"
        )
        colours = place.locator("canvas").evaluate(
            "c => [[.25, .25], [.75, .25], [.75, .75]].map(([x, y]) =>"
            " [...c.getContext('2d').getImageData(x * c.width, y * c.height, 1, 1).data])"
        )
        assert colours == [[68, 1, 84, 255], [255, 0, 255, 255], [253, 231, 36, 255]]  # low, NaN, high


def test_an_exception_on_either_side_is_shown_in_one_language_and_the_widget_goes_on(notebook):
    widget = fresh(notebook, "trial")
    failure = widget.get_by_role("alert")
    notebook.choose("en")
    for button, raised, says in (
        (".here", "TypeError: broken in the page", "the browser's part"),
        (".there", "ValueError: broken in Python", "raised an exception"),
    ):
        widget.locator(button).click()
        expect(failure).to_contain_text(raised)
        expect(failure).to_contain_text(says)
        expect(failure).to_contain_text("Traceback")
        expect(failure).not_to_contain_text(CHINESE)
        assert notebook.barriers("#" + named(widget)) == []
        widget.locator(button).click()
        expect(failure).to_be_hidden()


def test_its_keys_are_its_own_and_jupyterlab_keeps_those_with_ctrl(notebook):
    widget = fresh(notebook, "trial")
    buttons, page = widget.get_by_role("group").get_by_role("button"), notebook.page
    cells = len(notebook.ids)
    buttons.first.focus()
    for key, at in (
        ("ArrowRight", 1),
        ("ArrowDown", 3),
        ("ArrowDown", 3),
        ("Home", 0),
        ("End", 3),
        ("ArrowUp", 1),
    ):
        page.keyboard.press(key)
        expect(buttons.nth(at)).to_be_focused()
    expect(widget.locator("[aria-live]")).to_contain_text("now at two")
    for key in ("a", "b", "d", "d", "x", "j"):  # in JupyterLab: insert, delete, cut, move on
        page.keyboard.press(key)
    expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(cells)
    page.keyboard.press("Tab")
    expect(widget.locator(".here")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(buttons.nth(1)).to_be_focused()
    page.keyboard.press("Control+s")
    saved = wait_for_output(page, notebook.path, "trial")
    assert "widgets" not in saved["metadata"]
    for cell in saved["cells"]:
        assert len(json.dumps(cell)) < 10_000 or cell["id"] == "progress"


def test_what_a_notebook_may_store_is_small(notebook):
    """A front end that stores the state of widgets stores the traits; numbers are no traits."""
    notebook.type_into(
        "census",
        "trial.post('numbers', floats=torch.rand(100_000))\n"
        "state = trial.get_state()\n"
        "print(len(str({k: v for k, v in state.items() if k not in ('_esm', '_css')})))",
    )
    assert int(notebook.run("census").inner_text().split()[-1]) < 10_000
    notebook.type_into("census", CELLS["census"])


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_motion_is_left_out_on_request(notebook, wish):
    notebook.page.emulate_media(reduced_motion=wish)
    frames = fresh(notebook, "trial").locator(".frames")
    expect(frames).to_have_text("1 1" if wish == "reduce" else re.compile(r"^\d+ 1$"))
    assert (int(frames.inner_text().split()[0]) == 1) == (wish == "reduce")


def test_twenty_runs_leave_nothing_in_the_page_and_in_the_kernel(notebook):
    names = ("trial", "02-cell-03-guess", "02-cell-07-guess")

    def shown(times: int) -> str:
        for name in times * names:
            notebook.run(name)
        for name in names:
            expect(notebook.cell(name).locator(".hookedu-live")).to_have_count(1)
        return notebook.run("census").inner_text().split("(")[-1]

    leaves_nothing(notebook, shown, cells=len(names))


# -- guess() --------------------------------------------------------------------------------------------------------


def test_a_choice_with_the_keyboard_alone(notebook, theme):
    notebook.use(theme)
    widget = fresh(notebook, "02-cell-03-guess")
    expect(widget.get_by_role("status")).to_contain_text("skip this")
    radios = widget.get_by_role("radio")
    radios.first.focus()
    notebook.page.keyboard.press("Space")
    expect(widget.get_by_role("status")).to_contain_text("Noted")
    for _ in range(2):
        notebook.page.keyboard.press("ArrowDown")
    expect(radios.nth(2)).to_be_checked()
    readable(notebook, widget)
    notebook.run("02-cell-03")
    expect(widget.get_by_role("status")).to_contain_text("You had it right")
    expect(widget).to_contain_text("only those of leaves stay")
    assert [radio.is_disabled() for radio in radios.all()] == [True] * 3
    readable(notebook, widget)
    notebook.choose("en")
    expect(widget.get_by_role("status")).to_contain_text("Your guess")
    expect(widget).not_to_contain_text(CHINESE)
    notebook.choose("zh")
    expect(widget.get_by_role("status")).to_contain_text("猜对了")
    expect(widget).not_to_contain_text(re.compile("guess", re.IGNORECASE))


def test_a_number_waits_for_its_own_cell_and_survives_reruns(notebook):
    widget = fresh(notebook, "02-cell-07-guess")
    status = widget.get_by_role("status")
    widget.get_by_role("textbox").fill("three")
    notebook.page.keyboard.press("Enter")
    expect(status).to_contain_text("Write a number")
    widget.get_by_role("textbox").fill("6/2")
    notebook.run("between")  # leaving the field is enough
    expect(status).to_contain_text("Noted")
    notebook.run("02-cell-07")
    expect(status).to_contain_text("Not what you expected")
    expect(status.locator("strong")).to_have_text(["3", "2"])
    notebook.run("02-cell-07")
    expect(status.locator("strong")).to_have_text(["3", "2"])
    assert "1/2" in notebook.run("progress").inner_text()


def test_a_changed_cell_is_no_error_and_nothing_guessed_shows_nothing(notebook):
    widget = fresh(notebook, "02-cell-07-guess")
    notebook.type_into("02-cell-07", "seen = None")
    notebook.run("02-cell-07")
    notebook.type_into("02-cell-07", CELLS["02-cell-07"])
    notebook.run("02-cell-07")
    expect(widget.get_by_role("status")).to_contain_text("skip this")
    expect(widget.locator("strong")).to_have_count(0)
    expect(widget.get_by_role("alert")).to_be_hidden()


def test_high_contrast_keeps_the_choice_visible(notebook):
    notebook.page.emulate_media(forced_colors="active")
    widget = fresh(notebook, "02-cell-03-guess")
    widget.get_by_role("radio").first.check()
    expect(widget.get_by_role("status")).to_contain_text("Noted")
    readable(notebook, widget)


def readable(notebook, widget: Locator) -> None:
    """Every text stands out, and axe-core finds no serious barrier."""
    within = "#" + named(widget)
    found = notebook.contrasts(within)
    assert found and [(ratio, text) for ratio, text in found if ratio < 4.5] == []
    assert notebook.barriers(within) == []


def named(widget: Locator) -> str:
    """Give a widget an id for axe-core, which takes selectors only."""
    return widget.evaluate("e => e.id ||= 'hookedu-' + Math.random().toString(36).slice(2)")


def wait_for_output(page, path, cell: str) -> dict:
    """Wait until a saved notebook with the output of this cell has arrived, and return it."""
    for _ in range(200):
        with contextlib.suppress(ValueError):  # half written
            saved = json.loads(path.read_text(encoding="utf-8"))
            if next(c for c in saved["cells"] if c["id"] == cell)["outputs"]:
                return saved
        page.wait_for_timeout(50)
    raise AssertionError("not saved")


def test_after_a_restart_of_the_kernel_it_says_what_brings_it_back(open_cells):
    # So that no cell gets the number again that it had before.
    notebook = open_cells({"first": "None"} | {name: CELLS[name] for name in ("setup", "toggle", "trial")})
    notebook.choose("zh")
    parts = [notebook.cell(name).locator(".hookedu-live") for name in ("toggle", "trial")]
    for part in parts:
        expect(part.locator(".hookedu-ended")).to_be_hidden()
    notebook.restart()
    for part in parts:
        expect(part.locator(".hookedu-ended")).to_have_text(re.compile("内核重启过"))
        expect(part.locator(".hookedu-ended")).to_be_visible()
    notebook.run("setup")
    notebook.run("toggle")
    expect(parts[0].locator(".hookedu-ended")).to_be_hidden()
    notebook.choose("en")
    notebook.close()
