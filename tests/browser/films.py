"""Film the README's moving pictures in a real JupyterLab: `python -m tests.browser.films`, part of `make pictures`.

Each film is a list of frames, of which each is taken when the page has settled and has a duration of its own: the same
film on a slow machine. course/images/NAME.webp (in Chinese NAME.zh.webp) is an animation, the PNG beside it its last
frame, for readers who want no motion.
"""

import io
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import BrowserContext, Locator, Page, expect

from hookedu import catalog
from tests.browser.lab import Lab, chromium, newcomer, running
from tests.browser.notebook import Notebook

IMAGES = catalog.ROOT / "course" / "images"
LOOK, GLANCE, STEP = 1800, 700, 90  # ms that a frame lasts
# A pointer that screenshots show: the browser's own is not part of the page.
POINTER = """() => {
  const tip = document.createElement('div');
  tip.style.cssText = 'position:fixed;z-index:99999;width:22px;height:22px;border-radius:50%;pointer-events:none;' +
    'background:rgba(198,40,40,.35);border:2px solid #c62828;transform:translate(-50%,-50%);left:-50px;top:-50px';
  document.body.append(tip);
  document.addEventListener('pointermove', e => { tip.style.left = `${e.clientX}px`; tip.style.top = `${e.clientY}px`; }, true);
}"""

# The pixels of a canvas as a text to compare.
_PIXELS = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.join()"


class Film:
    """The frames of one part of a page."""

    def __init__(self, page: Page, clip: dict[str, float]):
        self.page, self.clip = page, clip
        self.frames: list[tuple[Image.Image, int]] = []
        page.evaluate(POINTER)

    def take(self, ms: int) -> None:
        """Add a frame that lasts `ms`; a frame like the one before only lasts longer."""
        shot = Image.open(io.BytesIO(self.page.screenshot(clip=self.clip, animations="disabled"))).convert(
            "RGB"
        )
        if self.frames and self.frames[-1][0].tobytes() == shot.tobytes():
            ms += self.frames.pop()[1]
        self.frames.append((shot, ms))

    def click(self, target: Locator, x: float = 0.5, y: float = 0.5) -> None:
        """Move the pointer to a place of an element, given as shares of its size, and click."""
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        self.take(GLANCE)
        self.page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])

    def write(self, code: str) -> None:
        """Type code into the cell with the focus."""
        for word in code.splitlines(keepends=True):
            self.page.keyboard.insert_text(word)
            self.take(3 * STEP)

    def save(self, name: str) -> None:
        """Write the animation and its last frame."""
        pictures, lasts = zip(*self.frames, strict=True)
        path = IMAGES / f"{name}.webp"
        pictures[0].save(
            path, save_all=True, append_images=pictures[1:], duration=lasts, loop=0, quality=70, method=6
        )
        pictures[-1].save(IMAGES / f"{name}.png", optimize=True)
        print(f"{path.name}: {len(pictures)} frames, {path.stat().st_size // 1024} kB")


def part_of(page: Page, element: Locator, height: float) -> dict[str, float]:
    """Return the clip that shows an element, from its top."""
    element.evaluate("e => e.scrollIntoView({block: 'start'})")
    box = element.bounding_box()
    return {
        "x": box["x"],
        "y": box["y"],
        "width": min(box["width"], 955 - box["x"]),
        "height": min(height, 890 - box["y"]),
    }


def layer_picker(notebook: Notebook, language: str) -> Film:
    """Lesson 00: what a trained net sees in a picture, layer by layer."""
    page = notebook.page
    notebook.run("00-cell-01")
    notebook.run("00-cell-07")
    widget = notebook.cell("00-cell-07").locator(".jp-OutputArea-output").first
    canvas = widget.get_by_role("application").first
    canvas.wait_for()
    film = Film(page, part_of(page, widget, 600))
    film.take(GLANCE)
    for layer in ("block1", "block2", "block3"):
        film.click(widget.locator(f'[role=option][data-key="{layer}"]'))
        expect(canvas).to_have_accessible_name(re.compile(layer))
        film.take(GLANCE)
        for x, y in ((0.15, 0.2), (0.4, 0.3), (0.6, 0.2)):
            box = canvas.bounding_box()
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            film.take(GLANCE)
    film.click(canvas, 5.5 / 7, 1.5 / 7)  # channel 13, in which the cross lights up
    film.take(2 * LOOK)
    return film


def diagnosis(notebook: Notebook, language: str) -> Film:
    """Lesson 02: a wrong answer turns into the mistake that it makes, then into Correct."""
    page = notebook.page
    notebook.run("02-cell-01")
    cell, check = "exercise-02-1", "exercise-02-1-check"
    film = Film(page, part_of(page, notebook.cell(cell), 270))
    for body in ("y.register_hook(seen.append)", "return y.register_hook(seen.append)"):
        notebook.cell(cell).locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        film.write(f"def watch(y, seen):\n    {body}")
        notebook.run(cell)
        panel = notebook.run(check).locator(".hookedu-panel")
        panel.wait_for()
        notebook.cell(cell).evaluate("e => e.scrollIntoView({block: 'start'})")
        film.take(2 * LOOK)
    return film


def playground(notebook: Notebook, language: str) -> Film:
    """Lesson 11: another class is asked for, a shape is dragged, channels are switched off, and the heat map follows."""
    page = notebook.page
    for cell in ("11-cell-01", "11-cell-03", "11-cell-53"):
        notebook.run(cell)
    widget = notebook.cell("11-cell-53").locator(".hookedu-live")
    canvas = widget.locator(".hookedu-play-stage canvas")
    switches = widget.get_by_role("switch")
    expect(switches).to_have_count(64)
    film = Film(page, part_of(page, widget, 495))
    film.take(LOOK)

    def follow(act: Callable[[], object]) -> None:
        """Wait until another picture is shown than before."""
        before = canvas.evaluate(_PIXELS)
        act()
        page.wait_for_function(
            f"([canvas, before]) => ({_PIXELS})(canvas) !== before", arg=[canvas.element_handle(), before]
        )

    follow(lambda: film.click(widget.locator(".hookedu-play-classes button").nth(4)))  # the cross
    film.take(LOOK)
    cross = widget.locator(".hookedu-play-shape").first.bounding_box()
    dot = canvas.bounding_box()["width"] / 64
    x, y = cross["x"] + cross["width"] / 2, cross["y"] + cross["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    columns, rows = (0, 1, 4, 9, 14, 9, 5, 1, -2, -3, -3), (-3, -8, -13, -16, -17, -13, -6, 2, 9, 15, 18)
    for column, row in zip(columns, rows, strict=True):
        to = x + column * dot, y + row * dot
        follow(lambda to=to: page.mouse.move(*to))
        film.take(2 * STEP)
    page.mouse.up()
    film.take(LOOK)
    for place in range(4):  # those that speak loudest for the cross are the first
        follow(lambda place=place: film.click(switches.nth(place)))
        film.take(GLANCE)
    page.mouse.move(x, y + 40 * dot)
    film.take(2 * LOOK)
    return film


FILMS: dict[str, tuple[str, Callable[[Notebook, str], Film]]] = {
    "layer-picker": ("00", layer_picker),
    "diagnosis": ("02", diagnosis),
    "playground": ("11", playground),
}


def main(names: list[str]) -> None:
    """Film all, or those named, in both languages."""
    with chromium() as browser:
        for language in ("en", "zh"):
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder)
                lessons = home / "lessons"
                command = [
                    sys.executable,
                    "-m",
                    "hookedu",
                    "lab",
                    "--folder",
                    lessons,
                    "--language",
                    language,
                ]
                env = newcomer(home) | {"PYTHONPATH": str(catalog.ROOT)}
                with running(command, lessons, env) as lab:
                    film_all(names or list(FILMS), lab, browser, language)


def film_all(names: list[str], lab: Lab, browser: BrowserContext, language: str) -> None:
    """Film in a lab that was started in a language."""
    for name in names:
        lesson, made = FILMS[name]
        notebook = lab.visit(f"{catalog.find(lesson).file}.ipynb", browser)
        notebook.page.keyboard.press("Control+b")  # the contents panel aside
        notebook.page.set_viewport_size({"width": 960, "height": 900})
        made(notebook, language).save(name if language == "en" else f"{name}.{language}")
    lab.shut_down(browser)


if __name__ == "__main__":
    main(sys.argv[1:])
