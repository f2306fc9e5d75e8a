"""Tests that every lesson as handed out opens and runs from top to bottom with no exercise answered, all in English.

All lessons share one page, one after the other: JupyterLab takes longer to load than a lesson takes to open.
Lessons 00 and 02 are tested in detail elsewhere. In Chinese, and with the other language chosen, all lessons are tested
by `make scale`.
"""

import pytest
from playwright.sync_api import expect

from hookedu import catalog, exercises
from tests.browser.lab import of_this_clone
from tests.browser.speech import speaks_only

PANELS = "panels => panels.map(panel => panel.dataset.outcome).filter(outcome => outcome)"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Start `hookedu lab` in English: a Chinese character stands out, whatever printed or showed it."""
    with of_this_clone(tmp_path_factory.mktemp("newcomer"), "--language", "en") as lab:
        yield lab


@pytest.mark.parametrize(
    "lesson", [x for x in catalog.lessons() if x.id != "02"], ids=lambda lesson: lesson.id
)
def test_runs_in_one_language_without_a_dialog_or_an_unexpected_error(lesson, started, page):
    notebook = started.click(lesson.notebook.name, page)
    shown = page.locator('.jp-MarkdownCell img[src^="data:image/png"]')
    expect(shown).to_have_count(1 if lesson.opening else 0)
    page.keyboard.press("Control+Shift+K")  # shows the contents panel
    notebook.run_all()
    assert notebook.cell_errors() == []
    assert notebook.dialogs() == []
    outcomes = page.locator(".hookedu-panel").evaluate_all(PANELS)
    assert outcomes == ["not_attempted"] * len(exercises.of_lesson(lesson.id))
    failures = page.locator(".jp-Notebook .hookedu-failure:visible").all_inner_texts()
    assert failures == [], "a widget shows an exception instead of what it is for"
    speaks_only(notebook, "en", "body")
    notebook.close()
    assert notebook.console_errors == []
