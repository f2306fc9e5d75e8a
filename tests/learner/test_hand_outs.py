"""Tests of handing out lessons into a folder: languages, updates, and files that are not what they should be."""

import dataclasses
import hashlib
import json
import os
import re
import shutil

import nbformat
import pytest
from bs4 import BeautifulSoup  # comes with nbconvert
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.cells import source_of
from hookedu.learner.hand_outs import hand_out
from tests.grading import notebooks as nb

NAME = "02_tensor_hooks.ipynb"
ANSWER = nb.reference()["02.1"]
CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
# English phrases that stay English in the Chinese lessons: names, and sentences of the trained language model.
ENGLISH_NAMES = {
    "gradient-weighted class activation mapping",
    "Sanity Checks for Saliency Maps",
    "Ben gave the ball to",
}
_NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|<code>.*?</code>|\$[^$]*\$|<[^>]+>|\]\([^)]*\)|https?://\S+", re.DOTALL
)
_PHRASE = re.compile(r"(?:[A-Za-z][A-Za-z'’-]*,? ){3,}[A-Za-z]+")


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """Copy the lesson notebooks, so that a test can publish a new version of one."""
    for lesson in catalog.lessons():
        (tmp_path / "course" / "lessons").mkdir(parents=True, exist_ok=True)
        shutil.copy(lesson.notebook, tmp_path / "course" / "lessons")
    copies = tuple(dataclasses.replace(le, root=tmp_path / "course") for le in catalog.lessons())
    monkeypatch.setattr(catalog, "lessons", lambda: copies)
    return tmp_path / "course" / "lessons"


@pytest.fixture
def mine(lessons, tmp_path):
    """Hand out the lessons in English."""
    assert hand_out(tmp_path / "mine", "en") == []
    return tmp_path / "mine"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def sources(path):
    return [source_of(cell) for cell in read(path)["cells"]]


def publish(lessons, old, new):
    """Publish a new version of lesson 02."""
    text = (lessons / NAME).read_text(encoding="utf-8")
    assert old in text
    (lessons / NAME).write_text(text.replace(old, new), encoding="utf-8")


def work(mine, change):
    """Save the learner's notebook after a change to its cells, by id."""
    notebook = read(mine / NAME)
    change({cell["id"]: cell for cell in notebook["cells"]})
    (mine / NAME).write_text(json.dumps(notebook), encoding="utf-8")


def answer(cells):
    cells["exercise-02-1"]["source"] = ANSWER


def test_a_first_start_hands_out_every_lesson(lessons, mine):
    assert {p.name for p in mine.glob("*.ipynb")} == {p.name for p in lessons.iterdir()}
    assert not list(mine.glob("*.new"))


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
class TestEveryLesson:
    def test_has_no_chinese_in_english(self, lesson, tmp_path):
        hand_out(tmp_path, "en")
        for text in sources(tmp_path / lesson.notebook.name):
            assert not CHINESE.search(text), text

    def test_has_no_english_sentence_in_chinese(self, lesson, tmp_path):
        hand_out(tmp_path, "zh")
        for cell in read(tmp_path / lesson.notebook.name)["cells"]:
            if cell["cell_type"] == "markdown":
                found = {phrase.strip() for phrase in _PHRASE.findall(_NO_PROSE.sub("。", source_of(cell)))}
                assert found <= ENGLISH_NAMES

    def test_needs_neither_script_nor_style_to_show_one_language(self, lesson, tmp_path):
        for language in ("zh", "en"):
            hand_out(tmp_path, language)
            text = "\n".join(sources(tmp_path / lesson.notebook.name))
            assert 'lang="' not in text and "hookedu-dot" not in text
            assert f'LanguageToggle("{language}")' in text

    def test_in_both_languages_is_the_built_notebook(self, lesson, tmp_path):
        hand_out(tmp_path, "both")
        copy, built = read(tmp_path / lesson.notebook.name), read(lesson.notebook)
        assert copy["cells"] == built["cells"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_neither_script_nor_style_runs_a_lesson_is_in_one_language(language, tmp_path):
    """As VS Code, Colab and GitHub render the notebook itself."""
    hand_out(tmp_path, language)
    exporter = HTMLExporter(template_name="basic")
    for lesson in catalog.lessons():
        page = BeautifulSoup(exporter.from_filename(str(tmp_path / lesson.notebook.name))[0], "html.parser")
        assert page.find(["script", "style"]) is None and len(page.get_text()) > 3_000
        if language == "en":
            assert [line for line in page.get_text().splitlines() if CHINESE.search(line)] == []
        else:
            for code in page.find_all(["pre", "code"]):
                code.clear()
            assert {phrase.strip() for phrase in _PHRASE.findall(page.get_text())} <= ENGLISH_NAMES


def test_changing_the_language_leaves_answers_and_outputs_alone(mine):
    def run(cells):
        answer(cells)
        for cell in cells.values():
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = (
                    [{"name": "stdout", "output_type": "stream", "text": "1"}],
                    7,
                )

    work(mine, run)
    before = read(mine / NAME)
    assert hand_out(mine, "zh") == []
    after = read(mine / NAME)
    for old, new in zip(before["cells"], after["cells"], strict=True):
        assert [new.get(key) for key in ("id", "outputs", "execution_count")] == [
            old.get(key) for key in ("id", "outputs", "execution_count")
        ]
    text = "\n".join(sources(mine / NAME))
    assert "## 2.1 一个消失的数" in text and "A number that vanished" not in text and ANSWER in text
    assert hand_out(mine, "en") == []
    assert read(mine / NAME) == before


def test_handing_out_again_changes_no_byte(mine):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in mine.glob("*.ipynb")}
    assert hand_out(mine, "en") == []
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in mine.glob("*.ipynb")} == before


def test_an_untouched_lesson_is_brought_up_to_date_in_its_language(lessons, mine):
    publish(lessons, "A number that vanished", "A second version")
    assert hand_out(mine, "en") == []
    assert any(text.startswith("## 2.1 A second version") for text in sources(mine / NAME))


def test_what_a_front_end_writes_on_its_own_is_no_change(lessons, mine):
    notebook = read(mine / NAME)
    notebook["metadata"] |= {
        "toc-autonumbering": False,
        "language_info": {"name": "python", "version": "3.99"},
    }
    for cell in notebook["cells"]:
        cell["metadata"]["execution"], cell["source"] = {"iopub": 1}, source_of(cell)  # a string, not lines
    (mine / NAME).write_text(json.dumps(notebook, indent=4), encoding="utf-8")
    publish(lessons, "A number that vanished", "A second version")
    assert hand_out(mine, "en") == []
    assert any(text.startswith("## 2.1 A second version") for text in sources(mine / NAME))


def test_a_changed_cell_stays_and_the_new_version_of_it_follows(lessons, mine):
    work(mine, answer)
    publish(
        lessons, "Put every gradient of y into the list seen", "Keep every gradient of y in the list seen"
    )
    (said,) = hand_out(mine, "en")
    assert "02_tensor_hooks.ipynb has been brought up to date" in said.en and "Of 1 of them" in said.en
    cells = read(mine / NAME)["cells"]
    place = next(i for i, cell in enumerate(cells) if cell["id"] == "exercise-02-1")
    assert source_of(cells[place]) == ANSWER
    offer = cells[place + 1]
    assert offer["cell_type"] == "markdown" and source_of(offer).startswith("**New version**")
    assert '"""Keep every gradient of y in the list seen; return the handle."""' in source_of(offer)
    assert len(list(mine.glob("02*"))) == 1, "no second copy"
    before = read(mine / NAME)
    assert hand_out(mine, "en") == [], "said once, put there once"
    assert read(mine / NAME) == before


def test_new_prose_around_a_changed_cell_arrives_without_ado(lessons, mine):
    work(mine, answer)
    publish(lessons, "A number that vanished", "A second version")
    (said,) = hand_out(mine, "en")
    assert "Of " not in said.en and "there are 1" in said.en
    text = "\n".join(sources(mine / NAME))
    assert "A second version" in text and ANSWER in text and "New version" not in text


def test_a_lost_record_costs_neither_work_nor_updates(lessons, mine):
    work(mine, answer)
    (mine / ".hookedu.json").write_text("{")
    publish(lessons, "A number that vanished", "A second version")
    hand_out(mine, "en")
    text = "\n".join(sources(mine / NAME))
    assert ANSWER in text and "A second version" in text


def test_an_untouched_notebook_of_an_earlier_hookedu_is_replaced_and_a_changed_one_kept(lessons, mine):
    """Earlier versions recorded a digest of the file, and their cells know nothing of languages."""
    old = read(mine / NAME)
    for cell in old["cells"]:
        cell["metadata"].pop("hookedu", None)
    old["cells"][0]["source"] = "# 旧的一版 · The old version"
    data = json.dumps(old).encode()
    for content, kept in ((data, False), (data + b"\n", True)):
        (mine / NAME).write_bytes(content)
        (mine / ".hookedu.json").write_text(json.dumps({NAME: hashlib.sha256(data).hexdigest()}))
        said = hand_out(mine, "en")
        assert [("stays as it is" in text.en) for text in said] == [True] * kept
        assert ((mine / NAME).read_bytes() == content) == kept


@pytest.mark.parametrize(
    "content",
    [
        b"my work",
        b"\xff\x00",
        b"[]",
        b'{"nbformat": 4}',
        b'{"nbformat": 3, "metadata": {}, "worksheets": []}',
        b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "metadata": {}, "source": [1]}]}',
    ],
)
def test_what_is_no_notebook_is_kept_under_another_name(mine, content):
    (mine / NAME).write_bytes(content)
    (said,) = hand_out(mine, "en")
    aside = NAME.replace(".ipynb", "-damaged.ipynb")
    assert all(name in text for name in (NAME, aside) for text in (said.en, said.zh))
    assert (mine / aside).read_bytes() == content
    assert any(text.startswith("## 2.1") for text in sources(mine / NAME)), "and the lesson is there"


def test_half_a_character_does_not_stop_it(mine):
    work(mine, lambda cells: cells["exercise-02-1"].update(source="x = '\ud800'"))
    hand_out(mine, "zh")
    assert "x = '\ud800'" in sources(mine / NAME)


def test_a_kernel_that_the_learner_chose_stays(mine):
    notebook = read(mine / NAME)
    notebook["metadata"]["kernelspec"] = {"name": "my-env", "display_name": "Mine", "language": "python"}
    (mine / NAME).write_text(json.dumps(notebook), encoding="utf-8")
    hand_out(mine, "zh")
    assert read(mine / NAME)["metadata"]["kernelspec"]["name"] == "my-env"


def test_a_deleted_lesson_comes_back(mine):
    (mine / NAME).unlink()
    hand_out(mine, "en")
    assert (mine / NAME).exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(lessons, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CourseError, match="cannot be written to"):
        hand_out(tmp_path / "file" / "mine")


def test_without_built_lessons_it_says_what_to_run(lessons, tmp_path):
    for path in lessons.iterdir():
        os.remove(path)
    with pytest.raises(CourseError, match="hookedu build"):
        hand_out(tmp_path / "mine")


@pytest.mark.parametrize("trusted", [True, False])
def test_jupyter_trusts_an_updated_copy_where_it_trusted_the_one_before(trusted, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    folder = tmp_path / "lessons"
    hand_out(folder, "zh")
    path = folder / "00_start_here.ipynb"
    before = path.read_bytes()
    if trusted:
        NotebookNotary().sign(nbformat.read(path, as_version=4))
    hand_out(folder, "en")
    assert path.read_bytes() != before
    assert bool(NotebookNotary().check_signature(nbformat.read(path, as_version=4))) is trusted


@pytest.mark.parametrize("name", ["lessons", "solutions"])
def test_the_courses_own_notebooks_are_never_handed_out_into(name):
    before = {path: path.stat().st_mtime_ns for path in (catalog.ROOT / name).iterdir()}
    with pytest.raises(CourseError, match="Choose another folder"):
        hand_out(catalog.ROOT / "hookedu" / ".." / name, "en")
    assert before == {path: path.stat().st_mtime_ns for path in (catalog.ROOT / name).iterdir()}
