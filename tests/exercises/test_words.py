"""Tests of the words of exercises: whatever does not match is refused on loading, with file and id."""

import dataclasses
import re

import pytest

from hookedu import catalog
from hookedu.exercises import Check, Say, find, words
from hookedu.exercises.words import WordsError

FILE = "02_tensor_hooks.yml"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Provide a copy of the words of lesson 02 that a test may spoil, and from which they are loaded."""
    (tmp_path / "course").mkdir()
    for name in (FILE, words.SHARED):
        text = (catalog.ROOT / "course" / name).read_text(encoding="utf-8")
        (tmp_path / "course" / name).write_text(text, encoding="utf-8")
    exercise = find("02.1")
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    caches = (words._load, words._shared)
    for cache in caches:
        cache.cache_clear()

    def spoil(old: str, new: str, **changes):
        """Replace the first text that fits in one of the files, and load 02.1 again."""
        for path in (tmp_path / "course").glob("*.yml"):
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")
        return dataclasses.replace(exercise, **changes)

    yield spoil
    for cache in caches:
        cache.cache_clear()


def test_words_as_they_are_load(course):
    assert course("(?!)", "").title == find("02.1").title


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("^    reads_dot_grad:", "    reads_dot_grat:", f"{FILE}: 02.1: mistakes: reads_dot_grad: The code"),
        (
            "^    reads_dot_grad:",
            "    other: handle\n    reads_dot_grad:",
            "no shared words named `handle`",
        ),
        (
            "^    reads_dot_grad:",
            "    more: {zh: '多', en: 'more'}\n    reads_dot_grad:",
            "mistakes: more: The code",
        ),
        (
            "^    reads_dot_grad:",
            "    asks_too_early:",
            f"{FILE}: line .*: asks_too_early: This id stands here twice",
        ),
        (r"^      en: '`watch` ran.*$", "", f"{FILE}: 02.1: mistakes: runs_backward: `en` is missing"),
        (r"^      en: '`watch` ran.*$", "      en: ' '", "mistakes: runs_backward: `en` is missing"),
        (r"^      en: '`watch` ran.*$", "      en: 3", "mistakes: runs_backward: `en` is missing"),
        (r"^  title: .*$", "", "02.1: title: `zh` is missing"),
        (
            r"^    no_handle: no_handle",
            "    no_handle: no.handle",
            "no shared words named `no.handle`",
        ),
        (r"^  insight:", "  lines: {left: {zh: '剩', en: 'left'}}\n  insight:", "lines: left: The code"),
        ('^"02.1":', '"02.7":', f"{FILE}: 02.1: Its words are missing here"),
        (
            r"^  tensor_hook.calls_now:",
            "  tensor_hook.now:",
            "no shared words named `tensor_hook.calls_now`",
        ),
    ],
)
def test_what_stands_on_one_side_only_is_refused(course, old, new, says):
    with pytest.raises(WordsError, match=says):
        course(old, new)


def test_a_lesson_without_words_is_refused(course):
    (catalog.ROOT / "course" / FILE).unlink()
    with pytest.raises(WordsError, match=r"course/02_\*.yml: There is no such file"):
        course("(?!)", "")


BARE = Check("bare", ok=lambda saw, key: True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"raises": {"calls_nwo": "None"}}, "mistakes: calls_nwo: The code of the exercise uses this id"),
        ({"raises": {}}, "mistakes: calls_now: The code of the exercise has no such id"),
        ({"checks": [BARE]}, "checks: bare: Its message has nothing to show"),
        ({"given": "", "checks": [dataclasses.replace(BARE, expected="a", got="b")]}, "checks: bare: Its"),
        ({"given": Say("nowhere")}, "lines: nowhere: The code of the exercise uses this id"),
        ({"given": ["x", Say("nowhere")]}, "lines: nowhere: The code of the exercise uses this id"),
    ],
)
def test_code_without_words_is_refused(course, change, says):
    with pytest.raises(WordsError, match=f"course/{FILE}: 02.1: {says}"):
        course("(?!)", "", **change)
