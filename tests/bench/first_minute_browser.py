"""Benchmark of a newcomer's first minute: until lesson 00 shows its picture, and until its first cell has run.

    python -m tests.bench.first_minute_browser [starts]

Each start has an empty home and an empty browser cache. Bounds of issue 25: the picture 10 s after the server's first
answer; the first cell 2 s, from Shift+Enter to its buttons, for a learner who has read for five seconds. One who presses
as soon as the kernel is ready waits for torch, which the kernel imports meanwhile; this is measured in turn, without a bound.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from playwright.sync_api import expect

from hookedu import catalog
from tests.browser.lab import chromium, of_this_clone
from tests.browser.notebook import Notebook

STARTS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
LESSON = catalog.lessons()[0].notebook.name
READING = 5  # seconds
_PICTURE = """() => {
  const picture = document.querySelector('.jp-Notebook .jp-RenderedMarkdown img');
  return picture?.complete && picture.naturalWidth > 0 && picture.getBoundingClientRect().height > 0;
}"""


def first_minute(reading: float) -> tuple[float, float]:
    """Return the seconds until the picture is shown, and those that the first cell takes after so many of reading."""
    with (
        tempfile.TemporaryDirectory() as home,
        chromium() as browser,
        of_this_clone(Path(home) / "home", "--language", "en") as lab,
    ):
        page = browser.new_page()
        begin = time.perf_counter()
        page.goto(f"http://127.0.0.1:{lab.port}")  # what `hookedu lab` opens
        page.wait_for_function(_PICTURE, timeout=60_000)
        pictured = time.perf_counter() - begin
        Notebook(page, lab.folder / LESSON, lambda: None)  # waits until the kernel is ready
        page.wait_for_timeout(1000 * reading)
        first = page.locator(".jp-CodeCell").first
        first.locator(".cm-content").click()
        begin = time.perf_counter()
        page.keyboard.press("Shift+Enter")
        expect(first.get_by_role("button", name="English")).to_be_visible(timeout=60_000)
        ran = time.perf_counter() - begin
        lab.shut_down(browser)
        return pictured, ran


def report(what: str, seconds: Sequence[float], bound: float | None = None) -> None:
    says = "" if bound is None else f"   bound {bound} s   {'ok' if median(seconds) < bound else 'MISSED'}"
    print(
        f"{what:28} median {median(seconds):5.2f} s   worst {max(seconds):5.2f} s   of {len(seconds)}{says}"
    )


if __name__ == "__main__":
    starts = [(first_minute(READING), first_minute(0)) for _ in range(STARTS)]
    report("the first picture", [pictured for pair in starts for pictured, _ in pair], 10)
    report("the first cell, after 5 s", [ran for (_, ran), _ in starts], 2)
    report("the first cell, at once", [ran for _, (_, ran) in starts])
