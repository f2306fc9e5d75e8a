"""TrainingPanel in a real JupyterLab: strips that grow, the mouse and the keys on them, both themes and languages."""

import re
import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.memory import leaves_nothing
from tests.browser.test_live_widgets import CHINESE, fresh, readable

pytestmark = pytest.mark.usefixtures("no_errors")
PANEL = """\
torch.manual_seed(0)
trained = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
panel = TrainingPanel(trained, optimizer)
panel"""
TRAIN = """\
def step(bad=False):
    optimizer.zero_grad()
    x = torch.randn(16, 4)
    loss = trained(x / 0 if bad else x).square().mean()
    loss.backward()
    optimizer.step()
    panel.note(loss)

with panel:
    for _ in range(12):
        step()"""
CELLS = {
    "setup": "import time, ipywidgets, torch\nfrom torch import nn\n"
    "from hookedu import LanguageToggle, TrainingPanel, list_hooks",
    "toggle": "LanguageToggle()",
    "panel": PANEL,
    "again": "panel",
    "train": TRAIN,
    "long": "end = time.monotonic() + 2  # long enough for several pictures\n"
    "with panel:\n    while time.monotonic() < end:\n        step()",
    "told": "row = panel.rows[3 * 4 + 2]\nprint(panel.noted[4], row.mean, row.std, row.gradient, row.ratio)",
    "census": "len(ipywidgets.widgets.widget._instances), len(list_hooks(trained))",
}


def trained(notebook, cell: str = "train") -> Locator:
    """Return a new panel after a run."""
    widget = fresh(notebook, "panel")
    notebook.run(cell)
    notebook.scroll_to("panel")
    expect(charts(widget)).to_have_count(6)
    return widget


def charts(widget: Locator) -> Locator:
    return widget.get_by_role("application")


def chart(widget: Locator, title: str) -> Locator:
    return widget.get_by_role("application", name=title)


def reading(widget: Locator) -> Locator:
    return widget.locator(".hookedu-run-reading")


def pixel(canvas: Locator, x: float, y: float) -> list[int]:
    """Return the colour of a canvas at a place in pixels of the page."""
    return canvas.evaluate(
        "(c, [x, y]) => [...c.getContext('2d').getImageData(x * c.width / c.clientWidth,"
        " y * c.height / c.clientHeight, 1, 1).data]",
        [x, y],
    )[:3]


def test_strips_grow_while_a_model_trains(notebook, theme):
    notebook.use(theme)
    widget = fresh(notebook, "panel")
    expect(widget.get_by_text("put the training loop inside")).to_be_visible()
    widget.evaluate(
        """widget => {
          window.said = new Set();
          const note = () => window.said.add(widget.querySelector('.hookedu-run-says').textContent);
          new MutationObserver(note).observe(widget, {childList: true, subtree: true, characterData: true});
        }"""
    )
    notebook.run("long")
    notebook.scroll_to("panel")
    expect(charts(widget)).to_have_count(6)
    assert notebook.page.evaluate("window.said.size") > 3  # before the last one, too
    expect(widget.locator(".hookedu-run-says")).to_have_text(re.compile(r"^\d+ steps, 3 layers\."))
    for language, others in (
        ("en", CHINESE),
        ("zh", re.compile("step|layer|gradient|activation", re.IGNORECASE)),
    ):
        notebook.choose(language)
        expect(widget.locator("> div:not(.hookedu-ended)").first).not_to_contain_text(others)
        for canvas in charts(widget).all():
            expect(canvas).not_to_have_attribute("aria-label", others)
        readable(notebook, widget)
    assert pixel(charts(widget).first, 2, 2) == [0, 0, 0]  # transparent: the page is its ground


def test_a_step_is_told_by_mouse_and_by_keys_and_its_numbers_are_the_kernels(notebook):
    widget, press = trained(notebook), notebook.page.keyboard.press
    expect(chart(widget, "activation: mean")).to_have_accessible_name("activation: mean: layers 3, steps 12")
    expect(widget.get_by_role("application", name="Curve of the loss, steps 12")).to_be_visible()
    told = [float(number) for number in notebook.run("told").inner_text().split()]
    notebook.scroll_to("panel")
    canvas = chart(widget, "activation: std")
    canvas.focus()
    for key in ("Home", "ArrowDown", "ArrowDown", *["ArrowRight"] * 4):
        press(key)
    said = widget.locator("[aria-live]")
    expect(said).to_have_text(re.compile("^Step 4, layer 2: loss"))
    expect(reading(widget)).to_have_text(said.inner_text())
    numbers = [float(part.split()[-1]) for part in said.inner_text().split(": ")[1].split(", ")]
    assert numbers == pytest.approx(told, rel=0.01)
    for key, step, layer in (
        ("Shift+ArrowRight", 11, 2),
        ("Home", 0, 2),
        ("End", 11, 2),
        ("ArrowUp", 11, 1),
    ):
        press(key)
        expect(said).to_have_text(re.compile(f"^Step {step}, layer {layer}:"))
    press("Escape")
    expect(reading(widget)).to_contain_text("A row per layer, a column per step")
    canvas.blur()
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 10, "y": 8})
    expect(reading(widget)).to_have_text(re.compile("^Step 11, layer 0: loss"))
    expect(said).to_have_text(re.compile("^Step 11, layer 1:"))  # the pointer is not announced
    curve = widget.get_by_role("application", name="Curve of the loss")
    curve.hover(position={"x": box["width"] - 10, "y": 40})
    expect(reading(widget)).to_have_text(re.compile(r"^Step 11: loss [\d.]+$"))
    notebook.page.mouse.move(0, 0)
    expect(reading(widget)).to_contain_text("A row per layer")


def test_a_logarithmic_scale_says_so(notebook):
    widget = trained(notebook)
    scales = widget.locator(".hookedu-run-scale")
    for language, says in (("en", "log scale"), ("zh", "对数刻度")):
        notebook.choose(language)
        plain, logarithmic = (re.compile(rf"^[-.\d\s]*{end}$") for end in ("", says))
        # the curve of the loss, mean, std, gradient, ratio, dead
        expect(scales).to_have_text([plain, plain, *[logarithmic] * 3, plain], use_inner_text=True)
        readable(notebook, widget)


def test_the_table_has_every_number_of_the_step(notebook):
    widget = trained(notebook)
    widget.locator("summary").focus()
    notebook.page.keyboard.press("Enter")
    expect(widget.locator("summary")).to_have_text("All numbers of step 11")
    expect(widget.locator("table tr")).to_have_count(4)
    heads = ["layer", "mean", "std", "gradient norm", "update ratio", "units not positive"]
    expect(widget.locator("th[scope=col]")).to_have_text(heads)
    expect(widget.locator("table tr").nth(2).locator("td").nth(3)).to_have_text(
        "—"
    )  # a ReLU has no parameters
    chart(widget, "activation: std").focus()
    notebook.page.keyboard.press("Home")
    expect(widget.locator("summary")).to_have_text("All numbers of step 0")
    readable(notebook, widget)
    notebook.choose("zh")
    expect(widget.locator("th[scope=col]").nth(3)).to_have_text("梯度范数")


def test_nan_and_what_is_missing_have_a_colour_and_words(notebook):
    notebook.type_into("train", f"{TRAIN}\n    step(bad=True)\n    trained(torch.ones(1, 4))")
    widget = trained(notebook)
    notebook.type_into("train", TRAIN)
    expect(widget.locator(".hookedu-run-says")).to_contain_text(
        "The first nan or inf: step 12, layer 0, sample 0."
    )
    for title, step, colour, says in (
        ("activation: std", 12, [230, 0, 230], "std NaN"),
        ("norm of the gradient", 13, [208, 208, 208], "gradient norm none"),
    ):
        canvas = chart(widget, title)
        width = canvas.evaluate("c => c.clientWidth")
        wide = (width - 118 - 8) / 14
        assert pixel(canvas, 118 + (step + 0.5) * wide, 8) == colour
        canvas.hover(position={"x": 118 + (step + 0.5) * wide, "y": 8})
        expect(reading(widget)).to_contain_text(says)
    expect(widget.get_by_text("exactly 0")).to_be_visible()


def test_a_place_that_shows_it_later_shows_the_run_too(notebook):
    trained(notebook)
    second = fresh(notebook, "again")
    expect(charts(second)).to_have_count(6)
    expect(second.locator(".hookedu-run-says")).to_contain_text("12 steps, 3 layers.")


def test_an_exception_is_shown_and_training_goes_on(notebook):
    broken = (
        "import hookedu.widgets.training_panel as module\nkept, module.strips_of = module.strips_of, None\n"
    )
    notebook.type_into("train", f"{broken}{TRAIN}\nmodule.strips_of = kept")
    widget = fresh(notebook, "panel")
    notebook.run("train")
    notebook.type_into("train", TRAIN)
    notebook.scroll_to("panel")
    failure = widget.get_by_role("alert")
    expect(failure).to_contain_text("TypeError")
    expect(failure).to_contain_text("training has gone on")
    expect(failure).not_to_contain_text(CHINESE)
    notebook.run("train")
    expect(failure).to_be_hidden()
    expect(charts(widget)).to_have_count(6)


def test_high_contrast_and_reduced_motion(notebook):
    notebook.page.emulate_media(forced_colors="active", reduced_motion="reduce")
    widget = trained(notebook)
    readable(notebook, widget)
    moving = "e => e.getAnimations({subtree: true}).length"
    assert widget.evaluate(moving) == 0
    canvas = chart(widget, "norm of the gradient")
    assert pixel(canvas, 122, 8) not in ([0, 0, 0], [255, 255, 255])


def test_a_theme_that_is_chosen_later_is_drawn(notebook):
    notebook.use("light")
    canvas = chart(trained(notebook), "norm of the gradient")
    for theme, brightest in (("dark", "> 120"), ("light", "< 120"), ("dark", "> 120")):
        notebook.use(theme)
        notebook.page.wait_for_function(  # of the names of the layers, by which stands nothing else
            "canvas => { const {data} = canvas.getContext('2d').getImageData(0, 0, 117, canvas.height);"
            "const inked = data.filter((_, i) => i % 4 === 0 && data[i + 3] > 60);"
            f"return inked.length > 2 && Math.max(...inked) {brightest}; }}",
            arg=canvas.element_handle(),
            timeout=30_000,
        )
    notebook.use("light")


def test_twenty_runs_leave_nothing(notebook):
    def shown(times: int) -> str:
        for _ in range(times):
            trained(notebook)
        return notebook.run("census").inner_text().split("(")[-1]

    assert leaves_nothing(notebook, shown).endswith(" 0)")


def test_a_saved_notebook_has_the_still_picture_and_no_state(notebook, tmp_path):
    trained(notebook)
    fresh(notebook, "again")
    notebook.page.keyboard.press("Control+s")
    expect(notebook.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = nbformat.read(notebook.path, 4)
    assert "widgets" not in saved.metadata
    (data,) = [output.data for cell in saved.cells if cell.id == "again" for output in cell.outputs]
    assert data["text/plain"] == "TrainingPanel()"
    page = tmp_path / "page.ipynb"
    nbformat.write(saved, page)
    subprocess.run([sys.executable, "-m", "nbconvert", "--to", "html", page], check=True, capture_output=True)
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert data["image/png"][:100] in html.replace("\n", "")
