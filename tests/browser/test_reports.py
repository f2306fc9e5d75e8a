"""Tests of the grader's pages in Chromium: opened from disk, in both languages, colour schemes and screen widths."""

import contextlib
import datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hookedu.exercises.feedback import Feedback
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.out import comparison, pages
from hookedu.grading.rows import Result, Row, Status
from hookedu.grading.similar import similar
from hookedu.language import Text
from tests.browser.notebook import barriers
from tests.grading import notebooks as nb
from tests.grading.test_similar import COPIED, OWN_WAY, hand_in

MARKUP = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title = 'hacked'\">"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write pages for two students, with markup wherever a name, a message or a traceback may appear."""
    folder = tmp_path_factory.mktemp("grades")
    said = Feedback(
        ((Text(zh="应当是", en="Expected"), MARKUP), (Text(zh="得到的是", en="Got"), "x" * 300)),
        f"  line 1\n    {MARKUP}\nValueError: {MARKUP}",
        (Text(zh=f"中文 {MARKUP}", en=f"In English {MARKUP}"),),
    )
    results = (
        Result("02.1", "correct", 3, points=3),
        Result("02.2", "raised", 3, message_id="raised", seed=1, error="ValueError: no", feedback=said),
    )
    with contextlib.closing(Gradebook(folder)) as book:
        for student in (MARKUP, "李雷"):
            notes = (Text(zh=f"注意 {MARKUP}", en=f"Note {MARKUP}"),)
            when = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
            book.save(
                Row(f"{student}/02.ipynb", student, "02", "a", Status.TIMEOUT, 6, 1.0, notes, results, when)
            )
        book.save(Row("李雷/notes.ipynb", "李雷", "", "b", Status.UNREADABLE, notes=notes))  # of no lesson
        book.adjust("李雷", "02.2", 1, MARKUP)
        pages.write(book)
        for student, answers in {
            "ann": OWN_WAY,
            "bob": COPIED,
            **dict.fromkeys("cde", nb.reference()),
        }.items():
            hand_in(book, student, answers)
        comparison.write(book, similar(book, 20))
    return folder


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_pages_open_from_disk_and_nothing_hostile_runs(browser, folder, tmp_path, width, scheme):
    context = browser.browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, locale="en-GB"
    )
    page, troubles = context.new_page(), []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    files = [folder / "report.html", folder / "similar.html", *(folder / "feedback").iterdir()]
    assert len(files) == 4
    for file in files:
        page.goto(file.as_uri())
        assert "hacked" not in page.title() or "<script>" in page.title(), "a name is shown, not run"
        assert page.locator("img").count() == 0 and page.locator("body script").count() == 1
        for language, other in (("en", "zh"), ("zh", "en")):
            page.click(f"[data-choose={language}]")
            assert barriers(page) == [], file.name
            assert page.locator(f"main [lang={other}]:visible").count() == 0
            assert page.locator(f"main [lang={language}]:visible").count()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
                "no sideways scrolling"
            )
        page.click("[data-choose=both]")
        assert (
            page.locator("main [lang=zh]:visible").count() and page.locator("main [lang=en]:visible").count()
        )
        paper, ink = (
            sum(map(int, page.evaluate(f"getComputedStyle(document.body).{name}.match(/\\d+/g)")[:3]))
            for name in ("backgroundColor", "color")
        )
        assert (paper > ink) == (scheme == "light"), "dark where the reader's system is dark"
        page.screenshot(path=tmp_path / f"{file.stem[:9]}.png", full_page=True)
    assert troubles == []
    context.close()


def test_the_language_follows_the_browser_and_is_remembered_for_the_next_page(browser, folder):
    context = browser.browser.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    assert page.locator("main [lang=en]:visible").count() == 0
    page.click("[data-choose=en]")
    page.locator("main td a").last.click()
    expect(page.locator("h1")).to_have_text("李雷")
    expect(page.locator("html")).to_have_attribute("data-show", "en")
    assert page.locator("main [lang=zh]:visible").count() == 0
    context.close()


def test_a_choice_in_one_tab_holds_in_the_other(browser, folder):
    context = browser.browser.new_context(locale="zh-CN")
    first, second = context.new_page(), context.new_page()
    for page in (first, second):
        page.goto((folder / "report.html").as_uri())
    first.click("[data-choose=en]")
    expect(second.locator("html")).to_have_attribute("data-show", "en")
    expect(second.locator("[data-choose=en]")).to_have_attribute("aria-pressed", "true")
    context.close()
