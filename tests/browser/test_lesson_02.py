"""Tests of lesson 02 in the browser. All share one page and run in order, from top to bottom of the notebook."""

import pytest
from playwright.sync_api import expect

from hookedu import catalog, exercises

LESSON = catalog.find("02")
FORGETS_THE_HANDLE = "def watch(y, seen):\n    y.register_hook(seen.append)"
RIGHT = "def watch(y, seen):\n    return y.register_hook(seen.append)"
PANEL = ".hookedu-panel"


@pytest.fixture(scope="module")
def notebook(open_notebook):
    """Open lesson 02 and run all its cells."""
    notebook = open_notebook(LESSON.notebook)
    notebook.use("light")
    assert notebook.dialogs() == []
    notebook.run_all()
    return notebook


@pytest.fixture(autouse=True)
def nothing_in_the_console(notebook):
    yield
    assert notebook.console_errors == []


def test_opens_without_a_dialog_and_runs_without_an_error(notebook):
    assert notebook.cell_errors() == []
    assert notebook.dialogs() == []
    outcomes = notebook.page.locator(PANEL).evaluate_all("panels => panels.map(p => p.dataset.outcome)")
    assert [o for o in outcomes if o] == ["not_attempted"] * 4


def test_the_toggle_hides_chinese_and_english_and_shows_both(notebook):
    for choice, shown in (("en", {"en"}), ("zh", {"zh"}), ("both", {"zh", "en"})):
        notebook.choose(choice)
        assert {language for language in ("zh", "en") if notebook.visible(language, PANEL)} == shown
        text = notebook.page.locator(".jp-Notebook")  # whose Markdown is drawn anew, one cell after the other
        for said, language in (("一个消失的数", "zh"), ("A number that vanished", "en")):
            if language in shown:
                expect(text).to_contain_text(said, use_inner_text=True)
            else:
                expect(text).not_to_contain_text(said, use_inner_text=True)


def test_a_wrong_answer_gets_its_message_and_the_right_one_success(notebook):
    notebook.type_into("exercise-02-1", RIGHT)
    notebook.run("exercise-02-1")
    said = notebook.run("exercise-02-1-check").locator(PANEL)
    assert said.get_attribute("data-outcome") == "correct"
    assert "正确" in said.inner_text() and "Correct" in said.inner_text()
    notebook.type_into("exercise-02-1", FORGETS_THE_HANDLE)
    notebook.run("exercise-02-1")
    said = notebook.run("exercise-02-1-check").locator(PANEL)
    assert said.get_attribute("data-message") == "no_handle"
    says = exercises.find("02.1").mistake("no_handle").says
    assert says.en.split("`")[0] in said.inner_text() and says.zh.split("`")[0] in said.inner_text()


def test_every_text_stands_out_from_its_ground(notebook, theme):
    notebook.use(theme)
    for within in (".jp-RenderedMarkdown", PANEL):
        found = notebook.contrasts(within)
        assert len(found) > 10
        assert [(round(ratio, 1), text) for ratio, text in found if ratio < 4.5] == []


def test_the_choice_lasts_for_the_next_notebook(notebook, open_notebook):
    notebook.choose("en")
    second = open_notebook(LESSON.notebook)
    second.run("02-cell-01")
    second.speaks("en")
    title = second.page.locator(".jp-Notebook .jp-RenderedMarkdown h1")
    # Its file may have been written in English by the press, or hold both languages of which one is shown.
    expect(title).to_contain_text("02 Tensor hooks", use_inner_text=True)
    expect(title).not_to_contain_text("张量钩子", use_inner_text=True)
    assert second.visible("zh") == 0
    second.choose("both")
    assert second.console_errors == []
