"""Tests of `hookedu new-lesson`: what it refuses, and that it keeps the text of course.yml.

That a new lesson builds, passes its tests and can be graded is tested in tests/course/test_guides.py, which
runs the commands of the guide for authors.
"""

import re
import shutil

import pytest
import yaml

from hookedu import catalog
from hookedu.authoring.new_lesson import new_lesson
from hookedu.catalog import CourseError

LIST = "course/course.yml"


@pytest.fixture
def root(tmp_path):
    """Create the part of a clone that the command reads: the list of lessons and the folders."""
    for folder in (
        "course",
        "hookedu/exercises/probes/lesson_40",
        "hookedu/exercises/checks",
        "tests/answers",
        "tests/figures",
        "tests/claims",
    ):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(catalog.ROOT / LIST, tmp_path / LIST)
    return tmp_path


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("number", "name", "says"),
    [
        (2, "other", "Number 02 is taken: `course/course.yml`"),
        (40, "other", "Number 40 is taken: `hookedu/exercises/probes/lesson_40`"),
        (100, "other", "between 0 and 99"),
        (-1, "other", "between 0 and 99"),
        *(
            (50, name, "lower-case English letters")
            for name in ("", "My", "2x", "a-b", "a.b", "主题", "../x", "x\n")
        ),
    ],
)
def test_what_cannot_be_is_reported_and_nothing_is_written(root, number, name, says):
    before = files(root)
    with pytest.raises(CourseError, match=re.escape(says)) as caught:
        new_lesson(root, number, name)
    assert re.search("请|之间", str(caught.value)), "in Chinese as well"
    assert files(root) == before


@pytest.mark.parametrize("missing", ["course", "hookedu/exercises/checks", "tests/answers", "tests/claims"])
def test_a_place_that_is_no_clone(root, missing):
    shutil.rmtree(root / missing)
    before = files(root)
    with pytest.raises(CourseError, match=f"`{missing}` is missing.: `git clone`"):
        new_lesson(root, 50, "topic")
    assert files(root) == before


@pytest.mark.parametrize("number", [20, 50])
def test_the_list_keeps_its_text_and_its_order(root, number):
    """Lesson 60 exists already; lessons 20 and 50 are inserted before it."""
    new_lesson(root, 60, "later")
    before = (root / LIST).read_text(encoding="utf-8")
    made = new_lesson(root, number, "no")
    after = (root / LIST).read_text(encoding="utf-8")
    numbers = [node["file"][:2] for node in yaml.safe_load(after)["lessons"]]
    assert numbers == sorted(numbers) and str(number) in numbers
    node = yaml.safe_load(after)["lessons"][-2]
    assert (node["file"], node["title"]["en"]) == (f"{number}_no", "No"), "not YAML's `no`"
    start = after.index(f"  - file: {number}_no")
    assert after[:start] + after[after.index("  - file: 60_later") :] == before
    assert all(path.is_file() for path in made) and len(made) == 11
