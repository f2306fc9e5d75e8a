"""Lesson 02 as a learner meets it."""

import pytest

from hookedu import course, exercises

LESSON = course.find("02")
FORGETS_THE_HANDLE = "def watch(y, seen):\n    y.register_hook(seen.append)"
RIGHT = "def watch(y, seen):\n    return y.register_hook(seen.append)"
PANEL = ".hookedu-panel"


def test_opens_without_a_dialog_and_runs_without_an_error(open_notebook):
    notebook = open_notebook(LESSON.notebook)
    assert notebook.dialogs() == []
    notebook.run_all()
    assert notebook.cell_errors() == []
    assert notebook.dialogs() == []
    assert notebook.console_errors == []
    outcomes = notebook.page.locator(PANEL).evaluate_all("panels => panels.map(p => p.dataset.outcome)")
    assert [o for o in outcomes if o] == ["not_attempted"] * 4


def test_the_toggle_hides_chinese_and_english_and_shows_both(open_notebook):
    notebook = open_notebook(LESSON.notebook)
    notebook.run_all()
    for button, shown in (("English", {"en"}), ("中文", {"zh"}), ("双语 · Both", {"zh", "en"})):
        notebook.page.get_by_role("button", name=button, exact=True).click()
        notebook.speaks(*shown)
        for within in (".jp-RenderedMarkdown", PANEL):
            there = {language for language in ("zh", "en") if notebook.visible(language, within)}
            assert there == shown, (button, within)
    assert notebook.console_errors == []


def test_the_choice_lasts_for_the_next_notebook(open_notebook):
    first = open_notebook(LESSON.notebook)
    first.run("02-cell-01")
    first.page.get_by_role("button", name="English", exact=True).click()
    first.page.wait_for_function(
        "() => getComputedStyle(document.querySelector('[lang=zh]')).display === 'none'"
    )
    second = open_notebook(LESSON.notebook)
    second.run("02-cell-01")
    second.speaks("en")
    assert (second.visible("zh"), second.visible("en") > 10) == (0, True)
    second.page.get_by_role("button", name="双语 · Both", exact=True).click()
    second.page.wait_for_function(
        "() => getComputedStyle(document.querySelector('[lang=zh]')).display !== 'none'"
    )


def test_a_wrong_answer_gets_its_message_and_the_right_one_success(open_notebook):
    notebook = open_notebook(LESSON.notebook)
    notebook.run("02-cell-01")
    notebook.type_into("exercise-02-1", FORGETS_THE_HANDLE)
    notebook.run("exercise-02-1")
    said = notebook.run("exercise-02-1-check").locator(PANEL)
    assert said.get_attribute("data-message") == "no_handle"
    says = exercises.find("02.1").mistake("no_handle").says
    assert says.en.split("`")[0] in said.inner_text() and says.zh.split("`")[0] in said.inner_text()
    notebook.type_into("exercise-02-1", RIGHT)
    notebook.run("exercise-02-1")
    said = notebook.run("exercise-02-1-check").locator(PANEL)
    assert said.get_attribute("data-outcome") == "correct"
    assert "正确" in said.inner_text() and "Correct" in said.inner_text()
    assert notebook.console_errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(open_notebook, theme):
    notebook = open_notebook(LESSON.notebook, theme)
    notebook.type_into("exercise-02-1", FORGETS_THE_HANDLE)
    notebook.run_all()
    notebook.scroll_to("02-cell-06")
    notebook.picture(f"lesson-02-{theme}")
    notebook.scroll_to("exercise-02-1")
    notebook.picture(f"feedback-{theme}")
    for within in (".jp-RenderedMarkdown", PANEL):
        found = notebook.contrasts(within)
        assert len(found) > 10
        assert [(round(ratio, 1), text) for ratio, text in found if ratio < 4.5] == []
