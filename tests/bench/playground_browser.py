"""Benchmark of GradCamPlayground in a real JupyterLab and Notebook 7: from the move of a shape to the painted heat map.

    python -m tests.bench.playground_browser [moves]

Bound: 100 ms (issue 26) for a picture of 64×64, with all channels on and with some off, when the model runs twice.
"""

import sys
from statistics import median

from playwright.sync_api import Locator, expect

from tests.browser.lab import everywhere
from tests.browser.notebook import Notebook

MOVES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
BOUND = 100  # ms
CELL = """\
from hookedu import GradCamPlayground
from hookedu.models.shapes import CLASSES, draw_shapes, load_model

GradCamPlayground(load_model(), "block4", draw_shapes, CLASSES, [("cross", 18, 32), ("triangle", 46, 32)])"""
# Milliseconds from a key that moves a shape until another picture is in the canvas and the page is painted.
_TIME = """async ([cell, key]) => {
  const canvas = cell.querySelector('.hookedu-play-stage canvas');
  const shape = cell.querySelector('.hookedu-play-shape');
  const pixels = () => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.join();
  const before = pixels();
  const shown = new Promise(resolve => {
    const observer = new MutationObserver(() => {
      if (pixels() === before) return;
      observer.disconnect();
      resolve();
    });
    observer.observe(canvas, {attributes: true});
  });
  const started = performance.now();
  shape.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  await shown;
  await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""


def report(what: str, times: list[float]) -> None:
    says = "ok" if median(times) < BOUND else "MISSED"
    print(
        f"{what:40} median {median(times):4.0f} ms   worst {max(times):4.0f} ms   of {len(times)}   "
        f"bound {BOUND} ms   {says}"
    )


if __name__ == "__main__":
    for place, notebook in everywhere({"play": CELL}):
        cell = notebook.cell("play")
        switches = cell.get_by_role("switch")
        expect(switches).to_have_count(64)

        def timed(key: str, notebook: Notebook = notebook, cell: Locator = cell) -> float:
            return notebook.page.evaluate(_TIME, [cell.element_handle(), key])

        timed("ArrowLeft")
        report(f"{place}: a move, all channels on", [timed("ArrowRight") for _ in range(MOVES)])
        for channel in (4, 17, 51):
            switches.nth(channel).click()
            expect(switches.nth(channel)).to_have_attribute("aria-checked", "false")
        report(f"{place}: a move, three channels off", [timed("ArrowLeft") for _ in range(MOVES)])
