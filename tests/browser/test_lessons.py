"""Tests that every lesson as handed out opens and runs from top to bottom with no exercise answered.

All lessons share one page, one after the other: JupyterLab takes longer to load than a lesson takes to open.
Lesson 02 has its own, more detailed file of tests.
"""

import pytest
from playwright.sync_api import expect

from hookedu import catalog, exercises

PANELS = "panels => panels.map(panel => panel.dataset.outcome).filter(outcome => outcome)"


@pytest.fixture(scope="module")
def page(lab, browser):
    """Open JupyterLab as `hookedu lab` does."""
    page = browser.new_page()
    page.goto(lab.url())
    yield page
    lab.shut_down(browser)


@pytest.mark.parametrize(
    "lesson", [x for x in catalog.lessons() if x.id != "02"], ids=lambda lesson: lesson.id
)
def test_runs_without_a_dialog_or_an_unexpected_error(lesson, lab, page):
    notebook = lab.click(lesson.notebook.name, page)
    shown = page.locator('.jp-MarkdownCell img[src^="data:image/png"]')
    expect(shown).to_have_count(1 if lesson.opening else 0)
    notebook.run_all()
    assert notebook.cell_errors() == []
    assert notebook.dialogs() == []
    outcomes = page.locator(".hookedu-panel").evaluate_all(PANELS)
    assert outcomes == ["not_attempted"] * len(exercises.of_lesson(lesson.id))
    notebook.close()
    assert notebook.console_errors == []
