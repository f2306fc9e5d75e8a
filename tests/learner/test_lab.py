"""Tests of handing out lessons: an update never overwrites a learner's work."""

import dataclasses
import json
import os
import shutil

import pytest

from hookedu import catalog, storage
from hookedu.catalog import CourseError
from hookedu.learner import lab

NAME = "02_tensor_hooks.ipynb"


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """Copy the lesson notebooks, so that a test can publish a new version of one."""
    for lesson in catalog.lessons():
        (tmp_path / "course" / "lessons").mkdir(parents=True, exist_ok=True)
        shutil.copy(lesson.notebook, tmp_path / "course" / "lessons")
    copies = tuple(dataclasses.replace(le, root=tmp_path / "course") for le in catalog.lessons())
    monkeypatch.setattr(catalog, "lessons", lambda: copies)
    return tmp_path / "course" / "lessons"


def test_a_first_start_hands_out_every_lesson(lessons, tmp_path):
    mine = tmp_path / "mine"
    assert lab.hand_out(mine) == []
    assert {p.name for p in mine.glob("*.ipynb")} == {p.name for p in lessons.iterdir()}


def test_work_is_kept_when_nothing_is_new(lessons, tmp_path):
    mine = tmp_path / "mine"
    lab.hand_out(mine)
    (mine / NAME).write_text("my work")
    assert lab.hand_out(mine) == []
    assert (mine / NAME).read_text() == "my work"
    assert len(list(mine.glob("02*"))) == 1


def test_an_untouched_lesson_is_brought_up_to_date(lessons, tmp_path):
    mine = tmp_path / "mine"
    lab.hand_out(mine)
    (lessons / NAME).write_text("second version")
    assert lab.hand_out(mine) == []
    assert (mine / NAME).read_text() == "second version"


def test_a_changed_lesson_is_kept_and_the_new_one_put_beside(lessons, tmp_path):
    mine = tmp_path / "mine"
    lab.hand_out(mine)
    (mine / NAME).write_text("my work")
    (lessons / NAME).write_text("second version")
    (said,) = lab.hand_out(mine)
    assert "02_tensor_hooks-2.ipynb" in said.en and "02_tensor_hooks-2.ipynb" in said.zh
    assert (mine / NAME).read_text() == "my work"
    assert (mine / "02_tensor_hooks-2.ipynb").read_text() == "second version"
    assert lab.hand_out(mine) == [], "said once, put there once"

    (mine / "02_tensor_hooks-2.ipynb").write_text("more work")
    (lessons / NAME).write_text("third version")
    lab.hand_out(mine)
    texts = {p.name: p.read_text() for p in mine.glob("02*")}
    assert texts == {
        NAME: "my work",
        "02_tensor_hooks-2.ipynb": "more work",
        "02_tensor_hooks-3.ipynb": "third version",
    }


def test_a_lost_record_never_costs_work(lessons, tmp_path):
    mine = tmp_path / "mine"
    lab.hand_out(mine)
    (mine / NAME).write_text("my work")
    (mine / ".hookedu.json").write_text("{")
    lab.hand_out(mine)
    assert (mine / NAME).read_text() == "my work"


def test_a_deleted_lesson_comes_back(lessons, tmp_path):
    mine = tmp_path / "mine"
    lab.hand_out(mine)
    (mine / NAME).unlink()
    lab.hand_out(mine)
    assert (mine / NAME).exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(lessons, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CourseError, match="cannot be written to"):
        lab.hand_out(tmp_path / "file" / "mine")


def test_without_built_lessons_it_says_what_to_run(lessons, tmp_path):
    for path in lessons.iterdir():
        os.remove(path)
    with pytest.raises(CourseError, match="hookedu build"):
        lab.hand_out(tmp_path / "mine")


@pytest.mark.parametrize(
    ("chosen", "locale"),
    [("zh", "zh_CN"), ("en", "en"), ("both", "default"), (None, "default"), (3, "default")],
)
def test_menus_are_in_the_language_that_was_chosen(chosen, locale, tmp_path, monkeypatch):
    if chosen:
        storage.save_setting("language", chosen)
    assert menus(tmp_path, monkeypatch) == (locale, {})


def test_a_language_chosen_in_jupyterlab_itself_wins(tmp_path, monkeypatch):
    storage.save_setting("language", "zh")
    own = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"locale": "fr_FR"}))
    assert menus(tmp_path, monkeypatch) == ("zh_CN", {"locale": "fr_FR"})


def menus(settings, monkeypatch):
    """Return the default language and the learner's language setting, as JupyterLab's server reads them."""
    from jupyterlab.commands import (
        get_app_dir,
    )  # imported late, or every process that collects tests would import JupyterLab
    from jupyterlab_server.settings_utils import get_settings

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", os.pathsep.join(map(str, lab.config_folders())))
    lab_folder = get_app_dir()
    found, _ = get_settings(
        app_settings_dir=f"{lab_folder}/settings",
        schemas_dir=f"{lab_folder}/schemas",
        settings_dir=str(settings),
        schema_name="@jupyterlab/translation-extension:plugin",
    )
    return found["schema"]["properties"]["locale"]["default"], found["settings"]
