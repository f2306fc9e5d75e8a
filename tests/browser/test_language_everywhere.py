"""Tests of all lessons in one language, run from top to bottom in a JupyterLab that was started for it.

They take as long as it takes to run all lessons twice, so they are for `make scale`.
"""

import json

import pytest

from hookedu import catalog
from hookedu.cells import said_in
from hookedu.models.stories import WORDS
from tests.browser.lab import of_this_clone
from tests.browser.speech import CHINESE, PRINTED, sentences, speaks_only

pytestmark = pytest.mark.scale

PYTHONS_OWN = ("Can't pickle local object",)  # an exception that a panel of lesson 08 shows
STAYS = (
    "also after an exception, which propagates unchanged",  # lesson 05 prints some code of hookedu
    "if error is not None",
    "grad in the end",  # scripts of lesson 13, which other processes run as they are
    "norm of the piece",
)
# Runs in each kernel before its first cell, and notes the words of all pictures, which in the page are pixels.
NOTES_WORDS = """\
def _note_words():
    import json, pathlib
    from matplotlib.text import Text
    usual = Text.draw

    def draw(text, renderer):
        if text.get_visible() and text.get_text().strip():
            with open(pathlib.Path.home() / "drawn", "a", encoding="utf-8") as file:
                file.write(json.dumps(text.get_text()) + "\\n")
        return usual(text, renderer)

    Text.draw = draw

_note_words()
"""


@pytest.fixture(scope="module")
def started(language, tmp_path_factory):
    """Start `hookedu lab` in a language; the kernels note what they draw in the file "drawn" beside the lessons."""
    home = tmp_path_factory.mktemp("newcomer")
    startup = home / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "notes_words.py").write_text(NOTES_WORDS, encoding="utf-8")
    with of_this_clone(home, "--language", language) as lab:
        yield lab


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_what_cells_print_draw_and_show(lesson, started, page, language):
    drawn = started.folder.parent / "drawn"
    drawn.write_text("", encoding="utf-8")
    notebook = started.click(lesson.notebook.name, page)
    page.keyboard.press("Control+Shift+K")
    notebook.run_all()
    assert notebook.cell_errors() == []
    speaks_only(notebook, language, "body", others=PYTHONS_OWN)
    words = [json.loads(line) for line in drawn.read_text(encoding="utf-8").splitlines()]
    assert words or "plt" not in lesson.source.read_text(encoding="utf-8")
    if language == "en":
        assert [text for text in words if CHINESE.search(text)] == []
    else:  # pictures stay English, as the guide for authors says: not every machine has a Chinese font
        printed = sentences(page.locator(PRINTED).all_inner_texts())
        ours = code_of(lesson)
        assert [said for said in printed if said in ours and said not in STAYS and not is_a_story(said)] == []
    notebook.close()


def code_of(lesson: catalog.Lesson) -> str:
    """Return a lesson's code in Chinese, and that of hookedu: an English sentence of neither is PyTorch's or Python's.

    Without the exercises, whose words are in the course, and which quote what PyTorch says to recognise it.
    """
    cells = json.loads(lesson.notebook.read_text(encoding="utf-8"))["cells"]
    said = [said_in(cell, "zh") for cell in cells if cell["cell_type"] == "code"]
    package = [p for p in (catalog.ROOT / "hookedu").rglob("*.py") if "exercises" not in p.parts]
    return "\n".join([*said, *(path.read_text(encoding="utf-8") for path in package)])


def is_a_story(sentence: str) -> bool:
    """Return whether it is in the language of the model of lesson 14."""
    return set(sentence.split()) <= set(WORDS)
