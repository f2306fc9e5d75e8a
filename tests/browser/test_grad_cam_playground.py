"""GradCamPlayground in a real JupyterLab: shapes dragged and moved with the keys, channels, classes, a picture uploaded."""

import io
import re
import subprocess
import sys

import nbformat
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing
from tests.browser.test_live_widgets import CHINESE, fresh, named, readable

pytestmark = pytest.mark.usefixtures("no_errors")
CELLS = {
    "setup": "import torch, ipywidgets\nfrom hookedu import GradCamPlayground, LanguageToggle, list_hooks\n"
    "from hookedu.models.shapes import CLASSES, draw_shapes, load_model\nmodel = load_model()",
    "toggle": "LanguageToggle()",
    "play": "play = GradCamPlayground(model, 'block4', draw_shapes, CLASSES, [('cross', 18, 32), ('star', 46, 32)])\nplay",
    "again": "play",
    "asked": "play.settle()\nprint(play.shapes, play.off, play.explained, [round(v, 1) for v in play.logits.tolist()])",
    "census": "len(ipywidgets.widgets.widget._instances), len(list_hooks(model)), model.head.weight.grad",
}


def played(notebook) -> Locator:
    """Return a new playground that shows its first picture."""
    widget = fresh(notebook, "play")
    expect(widget.get_by_role("switch")).to_have_count(64)
    return widget


def shape(widget: Locator, name: str) -> Locator:
    return widget.locator(".hookedu-play-shape").and_(widget.get_by_label(re.compile(rf"^{name}\b")))


def row(widget: Locator, name: str) -> Locator:
    return widget.locator(".hookedu-play-classes button", has_text=re.compile(rf"^{name}"))


def logits(widget: Locator) -> list[float]:
    return [float(text) for text in values(widget).all_inner_texts()]


def values(widget: Locator) -> Locator:
    return widget.locator(".hookedu-play-classes .hookedu-play-value")


def channel(widget: Locator, number: int) -> Locator:
    return widget.get_by_role("switch", name=re.compile(rf"^channel {number}\b|^通道 {number}\b"))


def by_share(widget: Locator) -> list[tuple[int, float]]:
    """Return the number of each channel and what it contributes, from above to below."""
    names = [switch.get_attribute("aria-label") for switch in widget.get_by_role("switch").all()]
    return [
        (int(number), float(share))
        for number, share in (
            re.match(r"channel (\d+), contributes (\S+) to", name).groups() for name in names
        )
    ]


def picture(widget: Locator) -> Locator:
    return widget.locator(".hookedu-play-stage canvas")


def pixels(widget: Locator) -> list[int]:
    return picture(widget).evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((_, i) => i % 4 < 3)]"
    )


def drag(widget: Locator, of: Locator, x: float, y: float, steps: int = 12) -> None:
    """Drag a shape by so many pixels of the picture."""
    picture(widget).scroll_into_view_if_needed()
    mouse, box = widget.page.mouse, of.bounding_box()
    dot = picture(widget).bounding_box()["width"] / 64
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse.move(*middle)
    mouse.down()
    mouse.move(middle[0] + x * dot, middle[1] + y * dot, steps=steps)
    mouse.up()


def test_a_shape_is_dragged_and_logits_and_heat_follow(notebook, theme):
    notebook.use(theme)
    widget = played(notebook)
    expect(shape(widget, "cross")).to_have_accessible_name("cross, column 18, row 32")
    before, heat = logits(widget), pixels(widget)
    expect(picture(widget)).to_have_accessible_name(re.compile("heat map of cross"))
    drag(widget, shape(widget, "cross"), 4, -16)
    expect(shape(widget, "cross")).to_have_accessible_name("cross, column 22, row 16")
    expect(values(widget).first).not_to_have_text(f"{before[0]:.1f}")
    asked = notebook.said("asked", re.escape("[('cross', 22, 16), ('star', 46, 32)] [] None"))
    expect(values(widget)).to_have_text(re.findall(r"-?\d+\.\d", asked))
    assert logits(widget) != before and pixels(widget) != heat
    x, y = (int(n) for n in re.findall(r"\d+", picture(widget).get_attribute("aria-label")))
    assert abs(x - 22) < 9 and abs(y - 16) < 9
    readable(notebook, widget)
    assert notebook.barriers("#" + named(widget)) == []
    expect(widget).not_to_contain_text(CHINESE)
    picture(widget).scroll_into_view_if_needed()
    notebook.choose("zh")
    expect(widget.get_by_text("总是最高的那一类")).to_be_visible()
    expect(widget).not_to_contain_text(re.compile("click|brightest|channel|highest", re.IGNORECASE))
    readable(notebook, widget)


def test_everything_with_the_keyboard_alone(notebook):
    widget, press = played(notebook), notebook.page.keyboard.press
    live = widget.locator("[aria-live]")
    widget.get_by_role("button", name="Add heart").focus()
    press("Enter")
    expect(shape(widget, "heart")).to_be_focused()
    x, y = (int(n) for n in re.findall(r"\d+", shape(widget, "heart").get_attribute("aria-label")))
    for _ in range(5):
        press("ArrowLeft")
    press("Shift+ArrowDown")
    expect(shape(widget, "heart")).to_have_accessible_name(f"heart, column {x - 5}, row {y + 8}")
    press("Shift+Tab")
    expect(shape(widget, "star")).to_be_focused()
    press("Tab")
    press("Delete")
    expect(shape(widget, "heart")).to_have_count(0)
    expect(shape(widget, "star")).to_be_focused()
    press("Tab")
    expect(widget.get_by_role("button", name="Remove")).to_be_focused()
    press("Enter")
    expect(shape(widget, "star")).to_have_count(0)
    expect(shape(widget, "cross")).to_be_focused()
    expect(live).to_contain_text("The highest is cross")
    row(widget, "cross").focus()
    press("ArrowUp")
    expect(row(widget, "star")).to_be_focused()
    press("Enter")
    expect(row(widget, "star")).to_have_attribute("aria-pressed", "true")
    expect(widget.get_by_role("button", name="Always the highest")).to_have_attribute("aria-pressed", "false")
    switches = widget.get_by_role("switch")
    switches.first.focus()
    press("ArrowRight")
    press("ArrowDown")
    press("Space")
    expect(widget.get_by_role("switch", checked=False)).to_be_focused()
    expect(live).to_contain_text("The highest is cross: ")
    expect(live).to_contain_text("(channels off: 1)")
    widget.get_by_role("button", name="Switch all on").focus()
    press("Enter")
    expect(widget.get_by_role("switch", checked=False)).to_have_count(0)
    expect(widget.get_by_role("button", name="Switch all on")).to_be_disabled()
    assert widget.evaluate("e => e.contains(document.activeElement)")


def test_a_channel_is_switched_off_by_a_click(notebook):
    widget = played(notebook)
    before = logits(widget)
    row(widget, "cross").click()
    expect(row(widget, "cross")).to_have_attribute("aria-pressed", "true")
    expect(widget.get_by_text(re.compile("^Bars: what each channel contributes to cross"))).to_be_visible()
    most, brings = by_share(widget)[0]
    channel(widget, most).scroll_into_view_if_needed()
    place = channel(widget, most).bounding_box()
    channel(widget, most).click()
    expect(channel(widget, most)).to_have_attribute("aria-checked", "false")
    expect(row(widget, "cross")).to_have_accessible_name(
        re.compile(rf"with all channels on {before[4]:.1f}$")
    )
    assert logits(widget)[4] == pytest.approx(before[4] - brings, abs=0.11)
    assert channel(widget, most).bounding_box() == place  # nothing jumps under the hand
    notebook.said("asked", re.escape(f"[{most}] cross"))
    widget.get_by_role("button", name="Show code").click()
    expect(widget.locator(".hookedu-code pre")).to_contain_text(f"output[:, [{most}]] = 0")
    second = fresh(notebook, "again")
    expect(second.get_by_role("switch", checked=False)).to_have_count(1)
    assert logits(second) == logits(widget) and named(second) != named(widget)
    notebook.type_into("again", "play")


def test_channels_are_rows_to_read_and_hit_sorted_as_one_likes(notebook):
    widget = played(notebook)
    shares = [share for _, share in by_share(widget)]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0 > shares[-1]
    first = widget.get_by_role("switch").first
    box = first.bounding_box()
    assert box["width"] > 280 and box["height"] >= 24  # WCAG 2.5.8
    bar = first.locator(".hookedu-play-share").bounding_box()
    track = first.locator(".hookedu-play-shares").bounding_box()
    assert bar["x"] == pytest.approx(track["x"] + track["width"] / 2, abs=1)
    widget.get_by_role("button", name="by number").click()
    assert [n for n, _ in by_share(widget)] == list(range(64))
    first.focus()
    notebook.page.keyboard.press("End")
    expect(channel(widget, 63)).to_be_focused()
    widget.get_by_role("button", name="by contribution").focus()
    notebook.page.keyboard.press("Enter")
    expect(widget.get_by_role("button", name="by number")).to_have_attribute("aria-pressed", "false")
    assert [share for _, share in by_share(widget)] == shares
    row(widget, "heart").click()
    expect(row(widget, "heart")).to_have_attribute("aria-pressed", "true")
    others = [share for _, share in by_share(widget)]
    assert others == sorted(others, reverse=True) != shares


def test_the_channel_that_changes_the_verdict_is_named_and_does_it(notebook):
    """A reader was asked which channel, switched off, changes the verdict, and could not tell."""
    notebook.type_into("play", CELLS["play"].replace("block4", "block3").replace("star", "triangle"))
    widget = fresh(notebook, "play")
    notebook.type_into("play", CELLS["play"])
    expect(widget.get_by_role("switch")).to_have_count(48)
    turning = widget.locator(".hookedu-play-turning")
    expect(turning).to_have_text(
        re.compile(r"Channels that change the verdict when switched alone: \d+ \(\d+ → cross")
    )
    number = int(re.search(r"\((\d+) →", turning.inner_text())[1])
    expect(widget.get_by_text("The highest is triangle")).to_be_visible()
    expect(channel(widget, number)).to_have_accessible_name(
        re.compile("switched alone, it makes cross the highest$")
    )
    expect(channel(widget, number)).to_contain_text("→ cross")
    readable(notebook, widget)
    channel(widget, number).click()
    expect(widget.locator(".hookedu-play-says")).to_have_text(
        re.compile(r"^The highest is cross: .* \(channels off: 1\)$")
    )
    expect(channel(widget, number)).to_have_accessible_name(
        re.compile("is off; .* and makes triangle the highest$")
    )
    readable(notebook, widget)
    notebook.choose("zh")
    expect(channel(widget, number)).to_have_accessible_name(re.compile("已关掉；.*最高的就变成 triangle$"))
    expect(turning).to_have_text(re.compile("^单独切换就能改变结论的通道有 "))
    heights = widget.get_by_role("switch").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert len(set(heights)) == 1, (
        "a row that takes a second line pushes those below out from under the pointer"
    )


def test_a_picture_is_uploaded_and_dropped(notebook, tmp_path):
    widget = played(notebook)
    widget.get_by_role("button", name="Heat map").click()
    expect(picture(widget)).to_have_accessible_name("Picture")
    before = pixels(widget)
    Image.new("RGB", (300, 200), (250, 10, 20)).save(tmp_path / "red.png")
    for file in ("red.png", "no.png"):
        if file == "no.png":
            (tmp_path / file).write_text("this is no picture")
        with notebook.page.expect_file_chooser() as chooser:
            widget.get_by_role("button", name="Upload a picture").click()
        chooser.value.set_files(tmp_path / file)
        expect(widget.get_by_role("button", name="Drop the uploaded picture")).to_be_visible()
        assert pixels(widget)[:3] == [250, 10, 20]
    expect(widget.get_by_text("The browser cannot read this file")).to_have_count(2)  # seen and heard
    widget.get_by_role("button", name="Drop the uploaded picture").click()
    expect(widget.get_by_role("button", name="Drop the uploaded picture")).to_be_hidden()
    assert pixels(widget) == before


def test_an_exception_is_shown_and_the_widget_goes_on(notebook):
    widget = played(notebook)
    notebook.type_into("census", "model.block4.register_forward_hook(lambda m, a, o: 1 / 0)\nNone")
    notebook.run("census")
    drag(widget, shape(widget, "cross"), 5, 5)
    failure = widget.get_by_role("alert")
    expect(failure).to_contain_text("ZeroDivisionError")
    expect(failure).to_contain_text("the widget goes on")
    expect(failure).not_to_contain_text(CHINESE)
    notebook.type_into("census", "model.block4._forward_hooks.clear()")
    notebook.run("census")
    notebook.type_into("census", CELLS["census"])
    drag(widget, shape(widget, "cross"), -5, -5)
    expect(failure).to_be_hidden()


def test_high_contrast(notebook):
    notebook.page.emulate_media(forced_colors="active", reduced_motion="reduce")
    widget = played(notebook)
    colour = "e => getComputedStyle(e).backgroundColor"
    for name in ("cross", "star"):
        bar, track = (row(widget, name).locator(f".hookedu-play-{part}") for part in ("bar", "track"))
        assert bar.evaluate(colour) != track.evaluate(colour)
    readable(notebook, widget)


def test_twenty_runs_leave_nothing(notebook):
    def shown(times: int) -> str:
        for _ in range(times):
            widget = played(notebook)
            shape(widget, "star").focus()
            notebook.page.keyboard.press("Shift+ArrowUp")
            expect(shape(widget, "star")).to_have_accessible_name("star, column 46, row 24")
        return notebook.run("census").inner_text().split("(")[-1]

    assert leaves_nothing(notebook, shown).endswith("0, None)")


def test_a_saved_notebook_has_the_still_picture_and_no_state(notebook, tmp_path):
    played(notebook)
    notebook.page.keyboard.press("Control+s")
    expect(notebook.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = nbformat.read(notebook.path, 4)
    assert "widgets" not in saved.metadata
    (data,) = [output.data for cell in saved.cells if cell.id == "play" for output in cell.outputs]
    assert data["text/plain"] == "GradCamPlayground()"
    page = tmp_path / "page.ipynb"
    nbformat.write(saved, page)
    subprocess.run([sys.executable, "-m", "nbconvert", "--to", "html", page], check=True, capture_output=True)
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert data["image/png"][:100] in html.replace("\n", "")
    import base64

    still = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert still.width > 800 and len(still.convert("RGB").getcolors(1 << 24)) > 100
