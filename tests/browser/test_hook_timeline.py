"""HookTimeline in a real JupyterLab: played, scrubbed, asked, by mouse and keyboard, moving and still."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing
from tests.browser.test_gradient_flow import faint
from tests.browser.test_layer_picker import COUNT
from tests.browser.test_live_widgets import CHINESE, fresh, named, readable

SETUP = """\
import ipywidgets, torch
from torch import nn
from hookedu import HookTimeline, LanguageToggle

class Breaks(nn.Module):
    broken = True

    def forward(self, x):
        if self.broken:
            raise ValueError("broken on purpose")
        return x

breaks = Breaks()"""
pytestmark = pytest.mark.usefixtures("no_errors")
CELLS = {
    "setup": SETUP,
    "toggle": "LanguageToggle()",
    "small": "steps = HookTimeline(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), torch.ones(1, 2))\nsteps",
    "blocks": "blocks = [nn.Sequential(*(nn.Linear(2, 2) if i % 2 else nn.Tanh() for i in range(n))) for n in (8, 7, 6)]\n"
    "HookTimeline(nn.Sequential(*blocks), torch.ones(1, 2))",
    "many": "HookTimeline(nn.Sequential(*(nn.Linear(2, 2) for _ in range(300))), torch.ones(1, 2))",
    "breaks": "HookTimeline(breaks, torch.ones(1, 2))",
    "mend": "breaks.broken = False",
    "shown": "print(steps.value, steps.score, *[f'{e.kind} {e.path}' for e in steps.recording], sep='|')",
    "set": "steps.value = 7",
    "census": "print(len(ipywidgets.widgets.widget._instances))",
}
FIRING = ".hookedu-model-mark.now"
# Notes every place at which what travels is drawn: it may have moved on before it could be looked at.
_WATCH = """scene => {
  scene.seen = new Set();
  const note = () => { const at = scene.querySelector('.hookedu-model-cargo circle'); if (at) scene.seen.add(at.getAttribute('cx')); };
  new MutationObserver(note).observe(scene, {childList: true, subtree: true, attributes: true});
}"""


def at(widget: Locator, n: int) -> None:
    """Wait until the event with this number, from 1, is shown and its hook fires."""
    expect(widget.locator(".hookedu-run-count")).to_have_text(re.compile(rf"^{n} / "))
    expect(widget.locator(FIRING)).to_have_count(1)


def firing(widget: Locator) -> str:
    mark = widget.locator(FIRING)
    return f"{mark.get_attribute('data-kind')} {mark.get_attribute('data-path')}"


def press(widget: Locator, name: str) -> None:
    widget.get_by_role("button", name=name, exact=True).click()


def places(widget: Locator) -> list[str]:
    """Return where all boxes and marks are."""
    everything = widget.locator(".hookedu-model-frame, .hookedu-model-mark")
    return everything.evaluate_all(
        "all => all.map(e => ['x', 'y', 'width', 'transform'].map(a => e.getAttribute(a)).join())"
    )


def events(notebook) -> list[str]:
    """Return the kind and module of each event, as Python says them."""
    return notebook.run("shown").inner_text().strip().split("|")[2:]


def test_each_hook_flashes_where_it_fires_and_no_box_moves(notebook, theme):
    notebook.use(theme)
    expected = events(notebook)
    widget = fresh(notebook, "small")
    at(widget, 1)
    still, seen, pictures = places(widget), [firing(widget)], {widget.locator("svg").screenshot()}
    forward = widget.get_by_role("button", name="Next")
    for number in range(2, len(expected) + 1):
        forward.click()
        at(widget, number)
        seen.append(firing(widget))
        expect(widget.locator(".hookedu-run-about")).to_contain_text(seen[-1].split()[0])
        pictures.add(widget.locator("svg").screenshot())
        if number == 12:
            readable(notebook, widget)
            assert faint(widget.locator("svg"), ".hookedu-model-frame") == []
            if theme == "light":
                notebook.picture("hook-timeline", notebook.cell("small"))
                # A click on a button that is just being replaced would be lost.
                notebook.choose("zh")
                expect(widget.get_by_role("button", name="播放")).to_be_visible()
                notebook.picture("hook-timeline.zh", notebook.cell("small"))
                notebook.choose("en")
                expect(widget.get_by_role("button", name="Play")).to_be_visible()
    assert [each.strip() for each in seen] == [each.strip() for each in expected]
    assert places(widget) == still and len(pictures) == len(expected)
    expect(forward).to_be_disabled()
    assert widget.locator(".hookedu-model-mark:not(.fired)").count() == 0
    press(widget, "Back")
    at(widget, len(expected) - 1)
    expect(widget).not_to_contain_text(CHINESE)
    notebook.choose("zh")
    expect(widget.get_by_role("button", name="播放")).to_be_visible()
    expect(widget).not_to_contain_text(re.compile("forward pass|Registered|Click|per second"))


def test_playing_pausing_and_scrubbing_ask_the_kernel_for_nothing(notebook):
    widget, page = fresh(notebook, "small"), notebook.page
    at(widget, 1)
    page.evaluate(COUNT)
    slider = widget.get_by_role("slider", name="Event")
    press(widget, "Play")
    expect(widget.get_by_role("button", name="Pause")).to_be_visible()
    expect(widget.locator(".hookedu-run-count")).to_have_text(re.compile("^3 / "))
    press(widget, "Pause")
    held = int(slider.input_value())
    expect(widget.locator("[aria-live]")).to_contain_text(f"Event {held + 1} of 30")
    widget.get_by_label("Speed").select_option("100 per second")
    press(widget, "Play")
    at(widget, 30)
    expect(widget.get_by_role("button", name="Play")).to_be_visible()
    for number in (3, 21, 11):
        slider.fill(str(number))
        at(widget, number + 1)
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^Event 12 of 30: "))
    mark = widget.locator(".hookedu-model-mark[data-kind=forward][data-path='1']")
    mark.click()
    assert firing(widget) == "forward 1"
    page.wait_for_timeout(100)  # for what may come late
    assert page.evaluate("window.toKernel") == 0
    position = [n for n, event in enumerate(events(notebook)) if event == "forward 1"]
    notebook.said("shown", rf"^({'|'.join(map(str, position))})\|")
    notebook.run("set")
    at(widget, 8)


def test_playing_begins_anew_at_the_end_and_goes_on_after_a_pause(notebook):
    widget = fresh(notebook, "small")
    at(widget, 1)
    widget.get_by_role("slider").fill("29")
    at(widget, 30)
    press(widget, "Play")
    expect(widget.locator(".hookedu-run-count")).to_have_text(re.compile("^2 / "))
    press(widget, "Pause")
    held = widget.locator(".hookedu-run-count").inner_text()
    notebook.page.wait_for_timeout(1500)  # longer than an event lasts
    expect(widget.locator(".hookedu-run-count")).to_have_text(held)
    widget.get_by_label("Speed").select_option("20 per second")
    press(widget, "Play")
    press(widget, "Next")  # takes over
    expect(widget.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_what_a_hook_sees_travels_unless_the_reader_wants_no_motion(notebook, wish):
    notebook.page.emulate_media(reduced_motion=wish)
    widget = fresh(notebook, "small")
    at(widget, 1)
    scene = widget.locator(".hookedu-run-scene")
    scene.evaluate(_WATCH)
    press(widget, "Next")
    at(widget, 2)
    assert (scene.evaluate("e => e.seen.size") > 2) == (wish == "no-preference")
    scene.evaluate("e => e.seen.clear()")
    widget.get_by_label("Speed").select_option("20 per second")
    press(widget, "Play")
    at(widget, 30)
    marks = widget.locator(".hookedu-model-mark").evaluate_all(
        "all => all.map(e => e.getAttribute('transform').match(/[-\\d.]+/)[0])"
    )
    seen = scene.evaluate("e => [...e.seen]")
    assert len(seen) > 5, "one event after the other, also without motion"
    assert (set(seen) <= set(marks)) == (wish == "reduce")


def test_predict_has_its_verdict_beside_the_question(notebook, theme):
    notebook.use(theme)
    widget, page = fresh(notebook, "small"), notebook.page
    expect(widget.get_by_text("Click a mark")).to_be_visible()
    press(widget, "Predict")
    expect(widget.get_by_text("Click a mark")).to_be_hidden()  # marks would give the answer away
    expect(widget.get_by_role("slider")).to_be_hidden()
    answers = widget.locator(".hookedu-run-answers button")
    expect(answers).to_have_count(4)
    expect(widget).to_contain_text("Which hook fires next? (event 2 of 30)")
    press(widget, "forward_pre · 0 (Linear)")
    status = widget.get_by_role("status")
    expect(status).to_contain_text("Right: forward_pre · 0 (Linear)")
    expect(status).to_contain_text("Score: 1 / 1")
    expect(widget).to_contain_text("(event 2 of 30)")
    at(widget, 2)
    expect(widget.get_by_role("button", name="✓ forward_pre · 0 (Linear)")).to_be_disabled()
    readable(notebook, widget)
    following = widget.get_by_role("button", name="Next question")
    expect(following).to_be_focused()
    page.keyboard.press("Enter")
    expect(answers.first).to_be_focused()
    expect(widget).to_contain_text("(event 3 of 30)")
    expect(widget.locator(".hookedu-run-verdict")).to_be_hidden()
    widget.locator(".hookedu-model-mark").last.click()  # would jump to it in "Watch"
    wrong = [a for a in range(4) if "forward · 0 " not in answers.nth(a).inner_text()]
    answers.nth(wrong[0]).click()
    expect(status).to_contain_text("Not this time")
    expect(status).to_contain_text("and forward · 0 (Linear) fired")
    expect(status).to_contain_text("Score: 1 / 2")
    at(widget, 3)  # what travels is there
    readable(notebook, widget)
    expect(widget).not_to_contain_text(CHINESE)
    notebook.choose("zh")
    expect(status).to_contain_text("得分：1 / 2")
    expect(widget).not_to_contain_text(re.compile("Score|Not this|Which hook|question"))
    notebook.said("shown", r"^2\|\(1, 2\)")
    widget.get_by_role("button", name="观看").click()
    expect(widget.get_by_role("slider")).to_have_value("2")


def test_the_keyboard_alone_is_enough(notebook):
    widget, keys = fresh(notebook, "blocks"), notebook.page.keyboard
    cells = len(notebook.ids)
    at(widget, 1)
    widget.get_by_role("button", name="Watch").focus()

    def tab_to(target: Locator) -> None:
        for _ in range(12):
            if target.evaluate("e => e === document.activeElement"):
                return
            keys.press("Tab")
        raise AssertionError("Tab does not reach it")

    fold = widget.get_by_role("button", name="Open 0", exact=True)
    tab_to(fold)
    keys.press("ArrowRight")
    expect(widget.get_by_role("button", name="Open 1", exact=True)).to_be_focused()
    keys.press("Home")
    boxes = widget.locator(".hookedu-model-frame")
    expect(boxes).to_have_count(4)
    keys.press("Enter")
    expect(boxes).to_have_count(12)
    expect(widget.get_by_role("button", name="Close 0", exact=True)).to_be_focused()
    first = widget.get_by_role("button", name="forward_pre at (model)", exact=True)
    tab_to(first)
    for _ in range(2):
        keys.press("ArrowRight")
    keys.press("Enter")
    assert firing(widget) == "forward_pre 0.0"
    expect(widget.locator("[aria-live]")).to_contain_text("forward_pre at 0.0")
    tab_to(widget.get_by_role("button", name="Next", exact=True))
    keys.press("Enter")
    at(widget, 4)
    tab_to(widget.get_by_role("slider"))
    keys.press("End")
    expect(widget.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    keys.press("Home")
    at(widget, 1)
    keys.press("ArrowRight")
    at(widget, 2)
    readable(notebook, widget)
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(cells)


def test_repeats_are_folded_and_their_events_told_apart(notebook):
    widget = fresh(notebook, "many")
    expect(widget.locator(".hookedu-model-frame")).to_have_count(2)
    at(widget, 1)
    widget.get_by_role("slider").fill("401")
    expect(widget.locator(".hookedu-model-cargo")).to_contain_text("forward_pre · 200")
    assert firing(widget) == "forward_pre 0"
    widget.get_by_label("Speed").select_option("1000 per second")
    press(widget, "Play")
    expect(widget.get_by_role("button", name="Play")).to_be_visible()
    expect(widget.get_by_role("button", name="Next")).to_be_disabled()


def test_an_exception_is_shown_in_one_language_and_the_widget_goes_on(notebook):
    notebook.run("setup")  # with a model that is not mended yet
    widget = fresh(notebook, "breaks")
    failure = widget.get_by_role("alert")
    expect(failure).to_contain_text("broken on purpose")
    expect(failure).not_to_contain_text(CHINESE)
    expect(widget.get_by_role("slider")).to_be_hidden()
    notebook.run("mend")
    press(widget, "Run again")
    expect(failure).to_be_hidden()
    at(widget, 1)
    press(widget, "Next")
    at(widget, 2)


def test_high_contrast(notebook):
    notebook.page.emulate_media(forced_colors="active")
    widget = fresh(notebook, "small")
    at(widget, 1)
    assert faint(widget.locator("svg"), ".hookedu-model-frame") == []
    readable(notebook, widget)


def test_another_place_shows_the_same(notebook):
    widget = fresh(notebook, "small")
    at(widget, 1)
    widget.get_by_role("slider").fill("9")
    notebook.type_into("census", "steps")
    notebook.run("census")
    second = notebook.cell("census").locator(".hookedu-live")
    at(second, 10)
    assert named(second) != named(widget)
    press(second, "Next")
    at(widget, 11)
    notebook.type_into("census", CELLS["census"])
    notebook.run("census")


def test_twenty_runs_leave_nothing(notebook):
    def shown(times: int) -> str:
        for _ in range(times):
            press(fresh(notebook, "small"), "Play")
        return notebook.run("census").inner_text()

    leaves_nothing(notebook, shown)


def test_what_leads_to_a_hook_passes_below_the_names(notebook):
    widget = fresh(notebook, "small")
    leader, name = widget.locator(".hookedu-model-leader"), widget.locator(".hookedu-model-names text").first
    for event in (1, 7, 20):
        widget.get_by_role("slider").fill(str(event - 1))
        at(widget, event)
        assert leader.get_attribute("d").startswith("M")
        assert leader.evaluate("it => it.nextElementSibling.matches('.hookedu-model-names')")
    # The letters stand on an edge of the ground's colour, which a line below them does not cross.
    style = name.evaluate("it => [getComputedStyle(it).paintOrder, getComputedStyle(it).strokeWidth]")
    assert style == ["stroke", "4px"]
