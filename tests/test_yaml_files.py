"""Tests of what authors are told about a file of theirs that cannot be read: one sentence with the file and the line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookedu import catalog, guesses, yaml_files
from hookedu.catalog import CourseError
from hookedu.exercises import words


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"a: 1\nb: x: 2\n", 2, "mapping values are not allowed"),
        (b"a: 1\n\tb: 2\n", 2, "found a tab"),
        (b"a: 'open\nb: 2\n", 3, "of line 1"),
        (b"a: [1, 2\nb: 2\n", 2, "of line 1"),
        ("钩: 1\nb: \x01\n".encode(), 2, "control characters are not allowed"),
        (b"a: 2026-99-99\n", 1, "month"),
        ("a: 1\nb: 钩子\n".encode("gb18030"), 2, "UTF-8"),
        (b"- a\n- b\n", 1, "name: ..."),
        (b"just words", 1, "name: ..."),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_line(tmp_path, content, line, says):
    path = tmp_path / "course" / "02_x.yml"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CourseError) as caught:
        yaml_files.load(path)
    (said,) = caught.value.says
    assert said.en.startswith(f"course/02_x.yml, line {line}: ") and said.zh.startswith(
        f"course/02_x.yml 第 {line} 行："
    )
    assert says in said.en and says in said.zh and "\n" not in said.en


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Copy the files of the course, to break one of them."""
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    (tmp_path / "course").mkdir()
    for path in (Path(__file__).parents[1] / "course").glob("*.yml"):
        shutil.copy(path, tmp_path / "course")
    caches = catalog.lessons, words._load, words._shared, guesses._loaded
    for cached in caches:
        cached.cache_clear()
    yield tmp_path / "course"
    for cached in caches:
        cached.cache_clear()


def broken(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("    minutes: 10\n", "", 7, "`minutes`"),
        ("zh: 从这里开始, ", "", 7, "`zh`"),
        ("lessons:\n", "lesson:\n", 5, "`lessons`"),
        ("    minutes: 10\n", "    minutes: 10\n  x: 1\n", None, "line"),
    ],
)
def test_an_entry_of_course_yml_that_lacks_something_is_named(course, old, new, line, says):
    broken(course / "course.yml", old, new)
    with pytest.raises(CourseError) as caught:
        catalog.lessons()
    (said,) = caught.value.says
    assert said.en.startswith("course/course.yml, line ") and says in said.en
    assert line is None or f", line {line}: " in said.en


def test_broken_words_of_an_exercise_are_named(course):
    broken(course / "02_tensor_hooks.yml", "  title: ", "  title: x: ")
    with pytest.raises(CourseError, match=r"course/02_tensor_hooks.yml, line \d+: "):
        words.words_of("02.1")


def test_a_command_says_it_without_a_traceback(course, tmp_path):
    broken(course / "course.yml", "lessons:\n", "lessons: x: 1\n")
    shutil.copytree(
        Path(__file__).parents[1] / "hookedu",
        tmp_path / "hookedu",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    command = [sys.executable, "-m", "hookedu", "hand-out", str(tmp_path / "mine")]
    env = os.environ | {"PYTHONPATH": "."}  # with this test's data folder, where no language is chosen
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert "course/course.yml, line 6: this is not valid YAML" in ran.stderr
