"""Every lesson as it is handed out, opened and run from top to bottom by a learner who has answered nothing yet.

Lesson 02 is looked at closely in a file of its own.
"""

import pytest

from hookedu import course, exercises

PANELS = "panels => panels.map(panel => panel.dataset.outcome).filter(outcome => outcome)"


@pytest.mark.parametrize(
    "lesson", [x for x in course.lessons() if x.id != "02"], ids=lambda lesson: lesson.id
)
def test_runs_without_a_dialog_or_an_unexpected_error(lesson, lab, browser):
    notebook = lab.open(lesson.notebook, browser)
    try:
        notebook.run_all()
        assert notebook.cell_errors() == []
        assert notebook.dialogs() == []
        assert notebook.console_errors == []
        outcomes = notebook.page.locator(".hookedu-panel").evaluate_all(PANELS)
        assert outcomes == ["not_attempted"] * len(exercises.of_lesson(lesson.id))
    finally:
        lab.shut_down(browser)
