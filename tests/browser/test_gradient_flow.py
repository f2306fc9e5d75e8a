"""GradientFlow in a real JupyterLab: by mouse, by keyboard, in both themes and languages, moving and still."""

import re
import time
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing
from tests.browser.test_live_widgets import CHINESE, fresh, named, readable

pytestmark = pytest.mark.usefixtures("no_errors")
CELLS = {
    "setup": "import torch, ipywidgets\nfrom hookedu import GradientFlow, LanguageToggle",
    "toggle": "LanguageToggle()",
    "sum": "a, b = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))\n"
    "c = a + b\nGradientFlow(c, {'a': a, 'b': b, 'c': c})",
    "fork": "w, x = (torch.tensor(value, requires_grad=True) for value in (1.0, 2.0))\n"
    "h, k = w + x, w + 1\ny = h * k\nflow = GradientFlow(y, {'w': w, 'x': x, 'h': h, 'k': k, 'y': y})\nflow",
    "vector": "u = torch.tensor([1., 2, 3], requires_grad=True)\nv = u * u\nm = v.mean()\n"
    "GradientFlow(m, {'u': u, 'v': v, 'm': m})",
    "freed": "s = (torch.ones(2, requires_grad=True) ** 2).sum()\ns.backward()\nGradientFlow(s, {'s': s})",
    "census": "len(ipywidgets.widgets.widget._instances), a.grad, len(a._backward_hooks)",
}
# WCAG 2 contrast of each visible text of the drawing to the ground of the page or of its box, which are nearly the same.
_CONTRAST = """([svg, frame]) => {
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); const k = c.startsWith('color(') ? 255 : 1;
                       return [n[0] * k, n[1] * k, n[2] * k, n[3] ?? 1]; };
  const light = c => { const [r, g, b] = c.map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = parse(getComputedStyle(svg.querySelector(frame)).fill);
  return [...svg.querySelectorAll('text')].filter(t => t.textContent && getComputedStyle(t).visibility === 'visible')
    .map(t => { const c = parse(getComputedStyle(t).fill);
                const [x, y] = [light([0, 1, 2].map(i => c[i] * c[3] + back[i] * (1 - c[3]))), light(back)];
                return [(Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05), t.textContent]; });
}"""


def faint(drawing: Locator, frame: str = ".hookedu-flow-frame") -> list[str]:
    """Return the visible texts of a drawing that do not stand out from its boxes, which are found by a selector."""
    found = drawing.page.evaluate(_CONTRAST, [drawing.element_handle(), frame])
    assert found
    return [text for ratio, text in found if ratio < 4.5]


def box(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("button", name=re.compile(rf"^{name} = "))


def grads(widget: Locator) -> list[str]:
    """Return what stands below the boxes, "" where nothing is shown yet."""
    shown = "texts => texts.map(t => getComputedStyle(t).visibility === 'visible' ? t.textContent : '')"
    return widget.locator(".hookedu-flow-grad").evaluate_all(shown)


def sees(widget: Locator, wanted: list[str]) -> None:
    """Wait until this stands below the boxes: a widget that has just been made is drawn a moment later."""
    limit = time.monotonic() + 15
    while grads(widget) != wanted and time.monotonic() < limit:
        widget.page.wait_for_timeout(20)
    assert grads(widget) == wanted


def test_the_spoiled_neighbour_with_the_keyboard_alone(notebook, theme):
    notebook.use(theme)
    notebook.choose("en")
    widget, page = fresh(notebook, "sum"), notebook.page
    box(widget, "a").focus()
    page.keyboard.press("ArrowRight")
    expect(box(widget, "b")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(widget.locator("[data-kind=none]")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(widget.locator("[data-kind=double_in_place]")).to_have_attribute("aria-pressed", "true")
    status = widget.get_by_role("status")
    expect(status).to_contain_text(
        "b got 2 instead of 1: this gradient changed although you did not touch it"
    )
    expect(box(widget, "b")).to_have_attribute("data-state", "spoiled")
    expect(box(widget, "b").locator(".hookedu-flow-grad")).to_be_visible()
    sees(widget, ["grad 1 → 2", "⚠ grad 2 ≠ 1", "grad 1"])
    expect(box(widget, "a")).to_have_accessible_name("a = 2, gradient 1 → 2, hook mul_(2)")
    assert faint(widget.locator("svg")) == []
    readable(notebook, widget)
    page.keyboard.press("Escape")
    expect(box(widget, "a")).to_be_focused()
    expect(widget).not_to_contain_text(CHINESE)
    notebook.choose("zh")
    expect(status).to_contain_text("你没有碰它，它的梯度却变了")
    expect(widget).not_to_contain_text(re.compile("gradient|forward|hook on", re.IGNORECASE))
    widget.get_by_role("button", name="全部取下").click()
    expect(box(widget, "b")).to_have_attribute("data-state", "same")
    expect(widget.locator("[data-kind=none]")).to_have_attribute("aria-pressed", "true")


def test_no_text_is_cut_and_none_covers_another(notebook):
    """Also with hooks, which make the texts longer while the boxes stay where they are."""
    widget = fresh(notebook, "vector")
    sees(widget, ["grad [0.667, 1.33, 2]", "grad [0.333, 0.333, 0.333]", "grad 1"])
    for name in ("u", "v", "m", None):
        drawing = widget.locator(".hookedu-flow-scene svg")
        edges = drawing.evaluate("e => [e.getBoundingClientRect()].map(r => [r.left, r.right])[0]")
        texts = drawing.locator(".hookedu-flow-node text").evaluate_all(
            "all => all.filter(t => t.textContent && getComputedStyle(t).visibility === 'visible')"
            ".map(t => [t.getBoundingClientRect(), t.textContent]).map(([r, words]) => [r.left, r.right, words])"
        )
        assert [words for left, right, words in texts if left < edges[0] or right > edges[1]] == []
        below = sorted(each for each in texts if "grad" in each[2])
        assert [one for one, other in pairwise(below) if one[1] > other[0]] == []
        low = drawing.evaluate(
            "e => [e, ...e.querySelectorAll('.hookedu-flow-grad')].map(t => t.getBoundingClientRect().bottom)"
        )
        assert low[0] == max(low)
        if name:
            box(widget, name).click()
            widget.locator("[data-kind=double_in_place]").click()
            expect(box(widget, name)).not_to_have_attribute("data-state", "same")
            expect(widget.get_by_role("button", name="Play")).to_be_visible()


def test_steps_and_phases(notebook):
    notebook.page.emulate_media(
        reduced_motion="reduce"
    )  # each step is immediate, so that each state can be read
    notebook.choose("en")
    widget = fresh(notebook, "fork")
    end = ["grad 5", "grad 2", "grad 3", "grad 2", "grad 1"]  # w, x, k, h, y
    sees(widget, end)
    step = widget.get_by_role("button", name="Step")
    step.click()
    expect(widget.locator(".hookedu-flow-where")).to_have_text("Starting from the leaves")
    values = widget.locator(".hookedu-flow-value")
    assert [v.is_visible() for v in values.all()] == [True, True, False, False, False]
    for name in ("k", "h", "y"):
        step.click()
        expect(widget.locator("[aria-live]")).to_have_text(f"Forward: {name} has been computed")
    assert [v.is_visible() for v in values.all()] == [True] * 5 and grads(widget) == [""] * 5
    step.click()
    assert grads(widget) == ["", "", "", "", "grad 1"]
    expect(widget.locator("[aria-live]")).to_have_text("Backward: y has got its gradient")
    numbers = widget.locator(".hookedu-flow-number")
    assert not any(number.is_visible() for number in numbers.all())
    widget.get_by_role("button", name="Play").click()
    sees(widget, end)
    assert all(number.is_visible() for number in numbers.all())
    widget.get_by_role("button", name="Forward").click()
    assert grads(widget) == [""] * 5
    widget.get_by_role("button", name="Backward").click()
    sees(widget, end)


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_numbers_travel_unless_the_reader_wants_no_motion(notebook, wish):
    notebook.page.emulate_media(reduced_motion=wish)
    notebook.choose("en")
    widget = fresh(notebook, "fork")
    scene = widget.locator(".hookedu-flow-travellers")
    # Count what is put there: a traveller may be gone before it could be looked at.
    scene.evaluate(
        "e => { e.seen = new Set(); new MutationObserver(() => [...e.children].forEach("
        "c => e.seen.add(c.getAttribute('transform')))).observe(e, {childList: true, subtree: true, attributes: true}) }"
    )
    before = widget.locator(".hookedu-flow-frame").evaluate_all("all => all.map(e => e.getAttribute('x'))")
    box(widget, "h").click()
    widget.locator("[data-kind=double]").click()
    expect(box(widget, "w").locator(".hookedu-flow-grad")).to_have_text("grad 7")
    expect(box(widget, "w").locator(".hookedu-flow-grad")).to_be_visible()
    assert (scene.evaluate("e => e.seen.size") > 4) == (wish == "no-preference")
    assert (
        widget.locator(".hookedu-flow-frame").evaluate_all("all => all.map(e => e.getAttribute('x'))")
        == before
    )


def test_pausing_holds_the_numbers_and_playing_goes_on(notebook):
    widget = fresh(notebook, "fork")
    widget.get_by_role("button", name="Backward").click()
    widget.get_by_role("button", name="Pause").click()
    held = grads(widget)
    assert "" in held
    notebook.page.wait_for_timeout(1000)  # longer than a step takes
    assert grads(widget) == held
    widget.get_by_role("button", name="Play").click()
    expect(box(widget, "x").locator(".hookedu-flow-grad")).to_be_visible()
    expect(widget.get_by_role("button", name="Play")).to_be_visible()


def test_the_code_can_be_copied(notebook):
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook.choose("en")
    widget = fresh(notebook, "sum")
    box(widget, "b").click()
    widget.locator("[data-kind=zero]").click()
    expect(widget.locator(".hookedu-flow-code")).to_contain_text("handle = b.register_hook(zero)")
    for plain in (False, True):  # without HTTPS there is no navigator.clipboard
        if plain:
            notebook.page.evaluate(
                "Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})"
            )
        widget.get_by_role("button", name=re.compile("Cop")).click()
        expect(widget.get_by_role("button", name="Copied")).to_be_visible()
        if plain:
            notebook.page.evaluate("delete navigator.clipboard")
        assert (
            notebook.page.evaluate("navigator.clipboard.readText()")
            == widget.locator("pre code").inner_text()
        )
        notebook.page.evaluate("navigator.clipboard.writeText('')")


def test_an_exception_is_shown_in_one_language_and_the_next_widget_works(notebook):
    failure = fresh(notebook, "freed").get_by_role("alert")
    expect(failure).to_contain_text("compute it anew")
    expect(failure).to_contain_text("second time")
    expect(failure).not_to_contain_text(CHINESE)
    widget = fresh(notebook, "sum")
    box(widget, "a").click()
    widget.locator("[data-kind=print]").click()
    expect(widget.locator(".hookedu-flow-printed")).to_have_text("a: tensor(1.)\n")


def test_high_contrast(notebook):
    notebook.page.emulate_media(forced_colors="active")
    widget = fresh(notebook, "sum")
    box(widget, "a").click()
    widget.locator("[data-kind=zero_in_place]").click()
    expect(box(widget, "b").locator(".hookedu-flow-grad")).to_have_text("⚠ grad 0 ≠ 1")
    assert faint(widget.locator("svg")) == []
    readable(notebook, widget)


def test_twenty_runs_leave_nothing(notebook):
    def shown(times: int) -> str:
        for _ in range(times):
            widget = fresh(notebook, "sum")
            box(widget, "a").click()
            widget.locator("[data-kind=double]").click()
            expect(box(widget, "a")).to_have_attribute("data-state", "changed")
        return notebook.run("census").inner_text().split("(")[-1]

    assert leaves_nothing(notebook, shown).endswith("None, 0)")


def test_another_place_shows_the_same(notebook):
    """The state is Python's: a view that is made later has the hooks and the numbers."""
    widget = fresh(notebook, "fork")
    box(widget, "k").click()
    widget.locator("[data-kind=halve]").click()
    expect(box(widget, "w").locator(".hookedu-flow-grad")).to_have_text("grad 3.5")
    notebook.type_into("census", "flow")
    notebook.run("census")
    second = notebook.cell("census").locator(".hookedu-live")
    expect(box(second, "w").locator(".hookedu-flow-grad")).to_have_text("grad 3.5")
    assert named(second) != named(widget)
    expect(second.locator(".hookedu-flow-mark").get_by_text("/ 2")).to_be_visible()
    notebook.type_into("census", CELLS["census"])
    notebook.run("census")
