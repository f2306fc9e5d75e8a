"""Tests of every lesson in one language before its cells run: opened, with an edited answer, switched, reloaded.

All lessons share one page, one after the other, in a JupyterLab that was started in the language. Of their cells only those
with the buttons run. What all cells print and show is tested in test_language.py for two lessons, and in
test_language_everywhere.py for all.
"""

import json

import pytest
from playwright.sync_api import expect

from hookedu import catalog, exercises
from hookedu.cells import said_in, source_of
from tests.browser.lab import Lab, of_this_clone
from tests.browser.notebook import Notebook
from tests.browser.speech import MENUS, OTHER, saved_in, speaks_only, starts_in, until

pytestmark = pytest.mark.scale  # five and a half minutes on two cores

# Both languages, odd blanks, letters beyond two bytes, and no line break at its end.
MINE = "def mine(x):\n    # 我写的 · my own answer,  é 𝛼\n    return  x  \n\n\nthis = 'is not Python"


@pytest.fixture(scope="module")
def started(language, tmp_path_factory):
    with of_this_clone(tmp_path_factory.mktemp("newcomer"), "--language", language) as lab:
        yield lab


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_a_lesson_opened_and_switched_with_an_answer(lesson, started, page, language):
    notebook = started.click(lesson.notebook.name, page)
    page.keyboard.press("Control+Shift+K")
    for word in MENUS[language]:
        expect(page.locator(".lm-MenuBar-itemLabel").get_by_text(word, exact=True)).to_be_visible()
    speaks_only(notebook, language, "body")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    # Once for each lesson, for the ways there and back are the same from either language: kernels take their time.
    if language == ("en", "zh")[catalog.lessons().index(lesson) % 2]:
        there_and_back(notebook, started, language)
    assert notebook.console_errors == []
    notebook.close()


def there_and_back(notebook: Notebook, started: Lab, language: str) -> None:
    """Check both languages, and the file, with an edited answer; on the way, the page is loaded anew."""
    exercise = exercises.of_lesson(catalog.find(notebook.path.stem).id)[0]
    answer = f"exercise-{exercise.id.replace('.', '-')}"
    notebook.run(next(cell["id"] for cell in saved_cells(notebook) if "LanguageToggle(" in source_of(cell)))
    notebook.type_into(answer, MINE)
    switch(notebook, started, OTHER[language], answer)
    notebook.page.reload()
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.ids), timeout=60_000)
    notebook.speaks(OTHER[language])
    speaks_only(notebook, OTHER[language], own=MINE)
    switch(notebook, started, language, answer)
    assert notebook.dialogs() == []


def switch(notebook: Notebook, started: Lab, language: str, answer: str) -> None:
    """Choose a language, and check what is on the screen and in the files."""
    notebook.choose(language)
    speaks_only(notebook, language, own=MINE)
    saved_in(notebook, language)
    changed = [
        cell["id"]
        for cell in saved_cells(notebook)
        if source_of(cell) != (MINE if cell["id"] == answer else said_in(cell, language))
    ]
    assert changed == []
    closed = [started.folder / lesson.notebook.name for lesson in catalog.lessons()]
    until(
        notebook.page, lambda: all(starts_in(path, language) for path in closed)
    )  # before the next is opened


def saved_cells(notebook: Notebook) -> list[dict]:
    return json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]
