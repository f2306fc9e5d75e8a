"""Tests with the real nbgrader: all its steps run, and it gives the same points as hookedu.

Starting a kernel with torch costs nbgrader five seconds of CPU time, so the ordinary run grades one student;
`make scale` grades twenty, and the solutions of all lessons.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from hookedu import catalog
from hookedu.authoring.nbgrader_export import export
from hookedu.catalog import CourseError
from hookedu.cli import app
from hookedu.exercises import of_lesson
from hookedu.grading.batch import grade
from tests.answers import answers
from tests.grading import notebooks as nb

pytestmark = pytest.mark.xdist_group("nbgrader")
LESSON = catalog.find(nb.LESSON)
GUIDE = (catalog.ROOT / "course" / "guides" / "hubs.md").read_text(encoding="utf-8")
# The commands of the guide as lists of words: export-nbgrader, cd, then those of nbgrader.
BLOCK = re.search(r"```bash\n(hookedu export-nbgrader.*?)```", GUIDE, re.DOTALL)[1]
EXPORT, CHANGE_FOLDER, *NBGRADER = filter(
    None, (shlex.split(line, comments=True) for line in BLOCK.splitlines())
)


# Runs nbgrader's commands one after the other in one process, because most of the time is its startup.
RUN = """
import json, sys
from nbgrader.apps.nbgraderapp import NbGraderApp
for command in json.loads(sys.argv[1]):
    NbGraderApp.launch_instance(command)
    NbGraderApp.clear_instance()
"""
NOISY = """
import sys, warnings

def watch(y, seen):
    print("seen by nobody", file=sys.stderr)
    warnings.warn("nor this")
    return y.register_hook(seen.append)
"""


class Course:
    """An nbgrader course in its own folder."""

    def __init__(self, folder: Path, *lessons: str):
        self.folder = folder
        run = CliRunner().invoke(app, ["export-nbgrader", str(folder), *lessons])
        assert run.exit_code == 0 and "README.md" in run.output, run.output

    def nbgrader(self, *commands: list[str]) -> str:
        """Run nbgrader commands in the course and return their output."""
        env = os.environ | {"PYTHONPATH": str(catalog.ROOT), "XDG_DATA_HOME": str(self.folder / "home")}
        env["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), env["PATH"]]
        )  # nbgrader calls alembic by name
        arguments = [sys.executable, "-c", RUN, json.dumps(commands)]
        run = subprocess.run(
            arguments, cwd=self.folder, env=env, capture_output=True, encoding="utf-8", timeout=3000
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def read(self, folder: str, lesson: catalog.Lesson = LESSON) -> dict:
        """Return an assignment's notebook in a folder such as "source", "release" or "submitted/ann"."""
        return json.loads((self.folder / folder / _file(lesson)).read_text(encoding="utf-8"))

    def hand_in(self, student: str, notebook: dict, lesson: catalog.Lesson = LESSON) -> None:
        """Put a notebook where nbgrader expects submissions."""
        nb.hand_in(self.folder / "submitted" / student / _file(lesson), notebook)

    def points(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """Return the points in nbgrader's gradebook by student and lesson, one per exercise in order."""
        with Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}") as book:
            return {
                (submission.student.id, lesson.name): tuple(
                    grade.score
                    for grade in sorted(submission.notebooks[0].grades, key=lambda grade: grade.name)
                )
                for lesson in book.assignments
                for submission in lesson.submissions
            }


def _file(lesson: catalog.Lesson) -> str:
    return f"{lesson.file}/{lesson.file}.ipynb"


def hand_in_class(class_: Course, students: int) -> None:
    """Hand in one mixed submission, and `students - 1` others that cover the known answers.

    The mixed one has a correct, a partly correct, an incorrect and an untouched answer. Of the others, the
    first is untouched, and the rest cycle through all known answers to each exercise.
    """
    mixed = nb.answered(
        {
            "02.1": NOISY,
            "02.2": nb.wrong("02.2", "no_handle")[0],
            "02.3": nb.wrong("02.3", "asks_too_early")[0],
        }
    )
    # A deleted check and a changed one: nbgrader restores both.
    mixed["cells"].remove(nb.check_of(mixed, "02.1"))
    nb.check_of(mixed, "02.4")["source"] = "5"
    class_.hand_in("mixed", mixed)
    ways = {e: [a for a in answers() if a.exercise == e.id] for e in of_lesson(nb.LESSON)}
    for n in range(students - 1):
        sources = {e.id: given[(n - 1) % len(given)].typed() for e, given in ways.items()}
        class_.hand_in(f"student-{n:02}", nb.answered(sources if n else {}))


@pytest.fixture(scope="module", params=[1, pytest.param(20, marks=pytest.mark.scale)])
def class_(request, tmp_path_factory) -> Course:
    """Grade a class with the guide's nbgrader commands; `said` is the output of `nbgrader validate`."""
    command, subcommand, folder, *lessons = EXPORT
    assert (command, subcommand, CHANGE_FOLDER) == ("hookedu", "export-nbgrader", ["cd", folder])
    made = Course(tmp_path_factory.mktemp("nbgrader") / folder, *lessons)
    hand_in_class(made, request.param)
    assert [words[:2] for words in NBGRADER] == [
        ["nbgrader", x] for x in ("generate_assignment", "autograde", "export")
    ]
    made.said = made.nbgrader(
        *(words[1:] for words in NBGRADER), ["validate", f"submitted/mixed/{_file(LESSON)}"]
    )
    return made


def test_students_get_the_lesson_as_it_is(class_):
    released = [(cell["id"], cell["source"]) for cell in class_.read("release")["cells"]]
    assert released == [(cell["id"], cell["source"]) for cell in nb.handed_out()["cells"]]


def test_both_graders_give_the_same_points(class_, tmp_path):
    rows = grade(class_.folder / "submitted", tmp_path, isolated=False).rows
    ours = {(row.student, LESSON.file): tuple(result.points for result in row.results) for row in rows}
    assert class_.points() == ours
    full = tuple(exercise.points for exercise in of_lesson(nb.LESSON))
    assert ours["mixed", LESSON.file] == (full[0], 2, 0, 0)
    exported = list(csv.DictReader((class_.folder / "grades.csv").open(encoding="utf-8")))
    sums = {student: sum(points) for (student, _), points in ours.items()}
    assert {row["student_id"]: float(row["score"]) for row in exported} == sums
    assert {float(row["max_score"]) for row in exported} == {sum(full)}


def test_validate_says_what_is_missing(class_):
    assert "FAILED ON 2 CELL(S)" in class_.said  # of the four checks, one is deleted and one replaced
    assert "there cannot be a gradient yet" in class_.said and '下一步：`hint("02.3")`' in class_.said


@pytest.mark.scale
def test_the_solutions_of_all_lessons_get_full_points(tmp_path):
    class_, lessons = Course(tmp_path), catalog.lessons()
    for lesson in lessons:
        class_.hand_in("reference", class_.read("source", lesson), lesson)
    class_.nbgrader(
        *([command, le.file] for le in lessons for command in ("generate_assignment", "autograde"))
    )
    full = {("reference", le.file): tuple(e.points for e in of_lesson(le.id)) for le in lessons}
    assert class_.points() == full


def test_what_the_school_changed_is_kept_and_said(tmp_path):
    export(tmp_path, [LESSON])
    changed, config = tmp_path / "source" / _file(LESSON), tmp_path / "nbgrader_config.py"
    ours = changed.read_text(encoding="utf-8")
    assert export(tmp_path, [LESSON]) == [], "untouched files are replaced without a word"
    changed.write_text("{}")
    config.write_text("c = get_config()")
    said = "\n".join(map(str, export(tmp_path, [LESSON])))
    assert (changed.read_text(), config.read_text()) == ("{}", "c = get_config()")
    assert f"source/{_file(LESSON)}" in said and "code_stub" in said and "README" not in said
    changed.unlink()
    assert len(export(tmp_path, [LESSON])) == 1, "the configuration alone is still theirs"
    assert changed.read_text(encoding="utf-8") == ours


def test_a_new_version_of_a_lesson_replaces_what_nobody_touched(clone, tmp_path):
    export(tmp_path / "out", [clone.lesson("02")])
    clone.replace("solutions/02_tensor_hooks.ipynb", "import torch", "import torch  # new", count=-1)
    assert export(tmp_path / "out", [clone.lesson("02")]) == []
    assert "torch  # new" in (tmp_path / "out" / "source" / _file(LESSON)).read_text(encoding="utf-8")


def test_nothing_is_written_where_a_lesson_is_not_built_or_the_folder_is_in_the_way(clone, tmp_path):
    (clone.root / "solutions" / f"{LESSON.file}.ipynb").unlink()
    with pytest.raises(CourseError, match="hookedu build 02"):
        export(tmp_path / "out", [clone.lesson("01"), clone.lesson("02")])
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CourseError, match="Choose another"):
        export(tmp_path / "file", [LESSON])


def test_the_course_explains_itself(tmp_path):
    export(tmp_path, [LESSON])
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    for words in NBGRADER:
        assert readme.count(f"`{shlex.join(words)}`") == 2, "in both languages, and as the guide says it"
