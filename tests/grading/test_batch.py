"""Grading end to end: real notebooks, real processes, a real gradebook.

Each batch of notebooks is graded once, and many tests examine the result.
"""

import contextlib
import csv
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.exercises import of_lesson
from hookedu.grading import batch
from hookedu.grading.batch import grade
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.limits import Limits
from hookedu.grading.matching import Plan, Step, key_of
from hookedu.grading.out import terminal
from hookedu.grading.rows import LOST, Result, Row, Status
from hookedu.grading.run.runner import Run, run
from hookedu.grading.run.sandbox import Sandbox
from tests.grading import notebooks as nb
from tests.grading.processes import birth, descendants, processes_with

pytestmark = [
    pytest.mark.xdist_group("grading"),  # the fixtures below are shared: one process grades the batches
    pytest.mark.isolated,
]
FILE = "02_tensor_hooks.ipynb"
FULL = sum(exercise.points for exercise in of_lesson("02"))


def graded(folder, out, **options):
    """Grade, and return the result, the rows by student, and the terminal output."""
    shown = io.StringIO()
    console = Console(file=shown, width=100)
    options = {"time_limit": 20} | options
    done = grade(folder, out, console=console, **options)
    return done, {row.student: row for row in done.rows}, shown.getvalue()


def table(out, name="submissions"):
    """Return a table of the gradebook as dicts, sorted by source."""
    connection = sqlite3.connect(out / "grades.db")
    connection.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2")]
    connection.close()
    return rows


def csv_rows(out):
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def points_of(row: Row):
    return [r.points for r in row.results]


def outcomes_of(row: Row):
    return [r.outcome for r in row.results]


# --- twelve notebooks -----------------------------------------------------------------------------------------

MISTAKES = [("02.1", "no_handle"), ("02.2", "late_binding"), ("02.4", "no_finally")]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    """Grade a small class: every way in which a submission can end, among others that must not be affected."""
    root = tmp_path_factory.mktemp("twelve")
    folder, right = root / "class", nb.reference()
    nb.hand_in(folder / "right-0" / FILE, nb.answered(right))
    for n in range(3):
        nb.hand_in(folder / f"right-{n + 1}" / FILE, nb.answered(nb.right(n)))
    for exercise, mistake in MISTAKES:
        wrong = {exercise: nb.wrong(exercise, mistake)[0]}
        nb.hand_in(folder / f"wrong-{mistake}" / FILE, nb.answered(right | wrong))
    nb.hand_in(folder / "stub" / FILE, nb.handed_out())
    nb.hand_in(folder / "empty" / FILE, b"")
    nb.hand_in(folder / "cut" / FILE, (folder / "right-0" / FILE).read_bytes()[:4000])
    nb.hand_in(folder / "loop" / FILE, nb.answered(right | {"02.3": "while True:\n    pass"}))
    nb.hand_in(folder / "exit" / FILE, nb.answered(right | {"02.2": "import os\nos._exit(0)"}))
    done, rows, shown = graded(folder, root / "out", time_limit=10)
    return folder, root / "out", done, rows, shown


def test_twelve_notebooks_give_twelve_rows(twelve):
    _, out, done, rows, _ = twelve
    expected = {f"right-{n}": (Status.GRADED, FULL) for n in range(4)}
    for exercise, mistake in MISTAKES:
        lost = next(e.points for e in of_lesson("02") if e.id == exercise) - nb.wrong(exercise, mistake)[1]
        expected[f"wrong-{mistake}"] = (Status.GRADED, FULL - lost)
    expected |= {
        "stub": (Status.NOT_ATTEMPTED, 0),
        "empty": (Status.UNREADABLE, 0),
        "cut": (Status.UNREADABLE, 0),
        "loop": (Status.TIMEOUT, FULL - 4),  # the other exercises keep their points
        "exit": (Status.KILLED, FULL - 3),
    }
    assert {s: (row.status, row.points) for s, row in rows.items()} == expected
    assert len(done.rows) == len(table(out)) == len(csv_rows(out)) == 12 and done.skipped == 0


def test_a_known_mistake_is_named_in_the_gradebook(twelve):
    _, out, _, _, _ = twelve
    results = {(r["source"].split("/")[0], r["exercise"]): r for r in table(out, "results")}
    for exercise, mistake in MISTAKES:
        result = results[f"wrong-{mistake}", exercise]
        assert (result["message_id"], result["points"]) == (mistake, nb.wrong(exercise, mistake)[1])
        assert f'hint("{exercise}")' in json.loads(result["feedback"])["says"][-1]["en"]
    assert results["loop", "02.2"]["outcome"] == "correct" and results["loop", "02.3"]["outcome"] == LOST
    seeds = [r["seed"] for r in results.values() if r["seed"] is not None]
    assert len(seeds) == len(set(seeds)) == 9 * 4, "every exercise of every run has a seed of its own"


def test_the_csv_says_what_the_database_says(twelve):
    _, out, _, rows, _ = twelve
    for student, row in csv_rows(out).items():
        assert row["status"] == rows[student].status.value
        assert [int(row[e.id]) for e in of_lesson("02")] == points_of(rows[student])
        assert (int(row["points"]), int(row["max_points"])) == (rows[student].points, FULL)
        assert bool(row["notes"]) == (row["status"] in ("unreadable", "timeout", "killed"))


def test_the_instructor_sees_a_row_each_and_why(twelve):
    _, _, _, rows, shown = twelve
    for student in rows:
        assert student in shown
    for said in ("未作答 · not attempted", "超时 · timeout", "退出码 0", "exit code 0", "文件是空的"):
        assert said in shown


def test_a_second_run_tries_the_loop_again_and_what_has_changed(twelve, tmp_path):
    folder, out, _, _, _ = twelve
    shutil.copytree(folder, tmp_path / "class")
    shutil.copytree(out, tmp_path / "out")
    before = table(tmp_path / "out")
    done, rows, _ = graded(tmp_path / "class", tmp_path / "out", time_limit=6)
    assert (list(rows), done.skipped) == (["loop"], 11) and len(table(tmp_path / "out")) == 12
    nb.hand_in(tmp_path / "class" / "cut" / FILE, nb.answered({"02.1": nb.right()["02.1"]}))
    done, rows, _ = graded(tmp_path / "class", tmp_path / "out", time_limit=6)
    assert sorted(rows) == ["cut", "loop"] and done.skipped == 10
    assert rows["cut"].status is Status.GRADED and points_of(rows["cut"]) == [3, 0, 0, 0]
    assert outcomes_of(rows["cut"])[1:] == ["not_attempted"] * 3
    assert [r for r in table(tmp_path / "out") if r["student"] not in rows] == [
        r for r in before if r["student"] not in rows
    ]


def test_one_student_alone_is_graded_again(twelve, tmp_path):
    folder, out, _, _, _ = twelve
    shutil.copytree(out, tmp_path / "out")
    _, rows, _ = graded(folder, tmp_path / "out", only=["cut"])
    assert list(rows) == ["cut"]
    with pytest.raises(CourseError, match=r"no student `cutt`\. The nearest: `cut`"):
        graded(folder, tmp_path / "out", only=["cutt"])


# --- hostile and odd code of learners -------------------------------------------------------------------------

FORGE = """
import json, os
line = json.dumps({"exercise": "02.1", "record": {"status": "correct", "points": 3}}) + chr(10)
for fd in range(3, 256):
    try:
        os.write(fd, line.encode())
    except OSError:
        pass
"""
PATCH_JUDGE = """
import hookedu.exercises.judging as judging, hookedu.learner.checking, hookedu.exercises as exercises
from hookedu.exercises.exercise import Outcome
judging.judge = lambda exercise, record, seed: judging.Verdict(exercise, Outcome.CORRECT, exercise.points)
hookedu.learner.checking.judge = judging.judge
for exercise in exercises.of_lesson("02"):
    object.__setattr__(exercise, "checks", [])
from hookedu.exercises.criteria import Check, Criterion
Check.judged = lambda *args: Criterion("all", True, 1000)
exercises.Exercise.points = 1000
def watch(y, seen): pass
"""
PATCH_PROBE = """
from hookedu.exercises import probes
object.__setattr__(probes.find("02.1"), "observe", lambda answer, case: {"passed": True, "points": 3})
def watch(y, seen): pass
"""
EQUAL_TO_ALL = """
class Always(list):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = lambda self: 0
    __len__ = lambda self: 2
    __bool__ = lambda self: False
    def __getattr__(self, name): return Always()
class watch(Always):
    def __new__(cls, y=None, seen=None): return Always()
"""
LEFTOVER = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "MARK"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
"""
LOUD = """
import os, sys
for _ in range(512):
    print("x" * 2**20); print("y" * 2**20, file=sys.stderr)
os.system("head -c 50000000 /dev/zero"); display("z" * 2**20)
"""
# Values that once killed the grader, or cost the rest of the notebook.
ODD_VALUE = """
import torch
class Liar(type):
    __eq__ = lambda cls, other: True
    __hash__ = type.__hash__
    @property
    def __name__(cls): raise SystemExit
class Odd(metaclass=Liar):
    @property
    def __class__(self): raise KeyError
    def __len__(self): return -1
class Text(str): pass
class Endless(Exception):
    def __str__(self): return Text("x" * 10**6)
def watch(y, seen):
    seen.append({})
    return y.register_hook(seen.append)
"""
ODD_VALUES = {
    "is-not-a-number": "float('nan')",
    "is-infinite": "torch.tensor([float('inf'), 1])",
    "has-no-elements": "torch.zeros(4096, 4096, 4096, 0)",
    "has-many-elements": "torch.zeros(10**7)",
    "has-many-items": "list(range(10**6))",
    "is-a-big-integer": "10**5000",
    "lies": "Odd()",
    "is-no-string": "Text('x')",
    "holds-itself": "seen",
    "has-no-storage": "torch.ones(2, device='meta')",
    "lies-about-its-values": "torch.ones(2).as_subclass(type('Mine', (torch.Tensor,), {'tolist': lambda self: [None]}))",
    "raises-a-lie": "(_ for _ in ()).throw(Endless())",
}
HOSTILE = {
    "forges-lines": {"02.2": FORGE},
    "patches-judge": {"02.1": PATCH_JUDGE},
    "patches-probe": {"02.1": PATCH_PROBE},
    "equals-all": {"02.1": EQUAL_TO_ALL},
    "closes-channel": {"02.2": "import os\nos.closerange(3, 256)\nwhile True: pass"},
    "floods-channel": {"02.2": "import os\nfor fd in range(3, 256):\n  try:\n    while True: os.write(fd, b'x' * 65536)\n  except OSError: pass"},
    "hogs-memory": {"02.2": "hog = []\nwhile True:\n    hog.append(bytearray(2**26))"},
    "hogs-in-torch": {"02.2": "def watch_many(tensors, seen): return torch.ones(2**36)"},
    "crashes": {"02.3": "import ctypes\nctypes.string_at(0)"},
    "asks": {"02.1": "name = input('who? ')\ndef watch(y, seen): pass"},
    "exits": {"02.1": "import sys\nsys.exit()"},
    "syntax": {"02.2": "def watch_many(tensors, seen:\n    return []"},
    "interrupts": {"02.1": "def watch(y, seen): raise KeyboardInterrupt"},
    "spies": {"02.1": "import os\nraise ValueError(str(sorted(os.environ)) + os.environ['HOME'])"},
    "fills-disk": {"02.1": "open('big', 'wb').write(bytes(10**8))"},
    **{name: {"02.1": ODD_VALUE.format(value)} for name, value in ODD_VALUES.items()},
    "nests": {"02.1": "def watch(y, seen):\n    for _ in range(40): seen[:] = [list(seen), 1]"},
    "bad-error": {"02.1": "class E(Exception):\n    __str__ = None\n    __bool__ = None\nraise E"},
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Grade submissions that attack the grader, and honest ones with odd cells among them."""
    root = tmp_path_factory.mktemp("hostile")
    folder, right = root / "class", nb.reference()
    mark = f"hookedu-leftover-{os.getpid()}"
    for name, answers in HOSTILE.items():
        nb.hand_in(folder / name / FILE, nb.answered(right | answers))
    odd = {"leaves-processes": LEFTOVER.replace("MARK", mark), "is-loud": LOUD}
    odd["uses-magics"] = "%time 1\n!echo hello\n%matplotlib inline\nawait __import__('asyncio').sleep(0)"
    odd["fails-elsewhere"] = "1 / 0"
    for name, source in odd.items():
        nb.hand_in(folder / name / FILE, nb.before(nb.answered(right), "02.1", [nb.code(source)]))
    twice = nb.answered(right)
    copied = nb.cell_of(twice, "02.1") | {"source": "1 / 0\ndef watch(y, seen): pass"}
    nb.hand_in(folder / "copy-fails" / FILE, nb.before(twice, "02.2", [copied]))
    damaged = nb.answered(right)
    for cell in damaged["cells"]:
        cell.pop("id"), cell.update(metadata={})
    nb.hand_in(folder / "lost-metadata" / "homework.ipynb", damaged)
    nb.hand_in(folder / "lost-metadata-named" / FILE, "\ufeff" + nb.json.dumps(damaged))
    before = descendants(os.getpid())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOKEDU_TEST_SECRET", "of the instructor")
        _, rows, _ = graded(folder, root / "out", memory_limit=512)
    assert len(rows) == len(list(folder.iterdir()))
    return rows, descendants(os.getpid()).keys() - before.keys(), mark, root / "out"


@pytest.mark.parametrize("student", ["forges-lines", "floods-channel"])
def test_what_the_grader_did_not_write_is_tampering(hostile, student):
    row = hostile[0][student]
    assert (row.status, row.points) == (Status.TAMPERED, 0), row
    assert set(outcomes_of(row)) == {LOST} and row.notes


@pytest.mark.parametrize("student", ["patches-judge", "patches-probe"])
def test_a_judge_or_a_probe_patched_in_the_worker_changes_nothing_and_is_reported(hostile, student):
    row = hostile[0][student]
    assert (row.status, points_of(row)) == (Status.GRADED, [0, 3, 4, 5])
    assert row.results[0].message_id == "not_registered" and "import hookedu.exercises" in row.reached


def test_a_value_that_equals_everything_equals_nothing(hostile):
    row = hostile[0]["equals-all"]
    assert row.status in (Status.GRADED, Status.KILLED) and row.results[0].points == 0


@pytest.mark.parametrize(
    "student, status, points",
    [
        ("closes-channel", Status.KILLED, [3, 0, 4, 5]),
        ("hogs-memory", Status.OUT_OF_MEMORY, [3, 0, 4, 5]),
        ("hogs-in-torch", Status.OUT_OF_MEMORY, [3, 0, 4, 5]),
        ("crashes", Status.KILLED, [3, 3, 0, 5]),
    ],
)
def test_an_end_costs_the_exercise_at_fault_alone(hostile, student, status, points):
    row = hostile[0][student]
    assert row.status is status and row.notes, row
    # After a cell that used up all memory, the later ones may or may not have enough.
    assert points_of(row)[:2] == points[:2] and (student == "hogs-memory" or points_of(row) == points)


@pytest.mark.parametrize(
    "student, exercise, error",
    [
        ("asks", 0, "EOFError: EOF when reading a line"),
        ("exits", 0, "SystemExit"),
        ("syntax", 1, "SyntaxError"),
        ("interrupts", 0, "KeyboardInterrupt"),
        ("fills-disk", 0, "OSError: [Errno 27] File too large"),
        ("bad-error", 0, "E: "),
    ],
)
def test_an_error_costs_its_own_exercise_alone(hostile, student, exercise, error):
    row = hostile[0][student]
    assert row.status is Status.GRADED, row
    assert outcomes_of(row) == ["raised" if n == exercise else "correct" for n in range(4)]
    assert row.results[exercise].error.startswith(error)


@pytest.mark.parametrize("student", [*ODD_VALUES, "nests"])
def test_what_cannot_be_written_down_costs_its_own_exercise_alone(hostile, student):
    row = hostile[0][student]
    assert row.status is Status.GRADED, row
    assert outcomes_of(row)[0] in ("incorrect", "raised") and outcomes_of(row)[1:] == ["correct"] * 3


def test_feedback_shows_the_line_where_a_learners_cell_failed(hostile):
    _, _, _, out = hostile
    (feedback,) = (
        json.loads(r["feedback"])["traceback"]
        for r in table(out, "results")
        if (r["source"], r["exercise"]) == (f"asks/{FILE}", "02.1")
    )
    assert "name = input('who? ')" in feedback and "site-packages" not in feedback


def test_a_submission_sees_nothing_of_the_instructors_environment(hostile):
    error = hostile[0]["spies"].results[0].error
    assert "HOOKEDU_TEST_SECRET" not in error and "'HOME'" in error
    assert error.endswith("]/learner")


@pytest.mark.parametrize("student", ["leaves-processes", "is-loud", "uses-magics", "fails-elsewhere"])
def test_odd_cells_around_right_answers_change_nothing(hostile, student):
    row = hostile[0][student]
    assert (row.status, row.points, row.notes) == (Status.GRADED, FULL, ()), row


def test_nothing_that_a_submission_started_is_alive(hostile):
    _, left, mark, _ = hostile
    assert processes_with(mark) == [] and left == set()


def test_lost_metadata_still_grades_and_says_so(hostile):
    row = hostile[0]["lost-metadata-named"]
    assert (row.status, row.points, len(row.notes)) == (Status.GRADED, FULL, 4)
    unknown = hostile[0]["lost-metadata"]
    assert (unknown.status, unknown.lesson, unknown.points) == (Status.GRADED, "02", FULL), (
        "by the names defined"
    )


def test_a_copy_that_fails_leaves_the_definition_before_it(hostile):
    row = hostile[0]["copy-fails"]
    assert (row.status, row.points) == (Status.GRADED, FULL)
    assert [note.en for note in row.notes] == ["02.1: 2 cells answer it; the last one counts"]


def test_no_wrong_answer_scores_more_than_its_mistake(hostile):
    for student, row in hostile[0].items():
        changed = [exercise in HOSTILE.get(student, {}) for exercise in ("02.1", "02.2", "02.3", "02.4")]
        assert not any(r.points for r, wrong in zip(row.results, changed, strict=False) if wrong)


# --- layouts, and mistakes of the instructor ------------------------------------------------------------------


def test_a_folder_that_grows_shows_whose_each_notebook_is(tmp_path):
    """`hw2/ann.ipynb` alone seems to be that of somebody called hw2; what was entered by hand follows."""
    folder, out = tmp_path / "class", tmp_path / "out"
    nb.hand_in(folder / "hw2" / "ann.ipynb", nb.handed_out())
    graded(folder, out)
    assert {*csv_rows(out)} == {"hw2"}
    with contextlib.closing(Gradebook(out)) as book:
        book.adjust("hw2", "02.1", 1, "on paper")
    nb.hand_in(folder / "hw2" / "bob.ipynb", nb.handed_out())
    done, _, shown = graded(folder, out)
    assert (len(done.rows), done.skipped) == (1, 1)
    assert {student: row["points"] for student, row in csv_rows(out).items()} == {"ann": "1", "bob": "0"}
    assert "kept under `hw2` is now kept under `ann`" in " ".join(shown.split())


def test_every_layout_gives_the_same_rows(tmp_path):
    right = nb.json.dumps(nb.answered({"02.1": nb.right()["02.1"]}))
    files = {"ann": right, "bob": nb.json.dumps(nb.handed_out()), "eve": "{"}
    places = {"plain": "{}/" + FILE, "nbgrader": "submitted/{}/ps1/" + FILE}
    seen = []
    for layout, place in places.items():
        for student, data in files.items():
            nb.hand_in(tmp_path / layout / place.format(student), data)
        with zipfile.ZipFile(tmp_path / f"{layout}.zip", "w") as archive:
            for student, data in files.items():
                archive.writestr(f"{layout}/{place.format(student)}", data)
        for path in (tmp_path / layout, tmp_path / f"{layout}.zip"):
            _, rows, _ = graded(path, tmp_path / f"out-{path.name}")
            seen.append([(s, r.lesson, r.status, points_of(r), r.max_points) for s, r in rows.items()])
    assert seen == [seen[0]] * 4
    assert [row[2:4] for row in seen[0]] == [
        (Status.GRADED, [3, 0, 0, 0]),
        (Status.NOT_ATTEMPTED, [0] * 4),
        (Status.UNREADABLE, [0] * 4),
    ]


@pytest.fixture
def stubs(tmp_path):
    """Write a class of one untouched notebook, which needs no worker process, and return its folder."""
    nb.hand_in(tmp_path / "class" / "ann" / FILE, nb.handed_out())
    return tmp_path / "class"


@pytest.mark.parametrize("what", [b"not a database at all", b"SQLite format 3\0" + b"\x07" * 5000])
def test_a_corrupt_gradebook_is_named_and_left_alone(stubs, tmp_path, what):
    (tmp_path / "grades.db").write_bytes(what)
    (tmp_path / "grades.csv").write_text("as it was")
    with pytest.raises(CourseError) as caught:
        graded(stubs, tmp_path)
    (said,) = caught.value.says
    assert "grades.db" in said.en and "grades.db" in said.zh
    assert (tmp_path / "grades.db").read_bytes() == what
    assert (tmp_path / "grades.csv").read_text() == "as it was"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("CREATE TABLE photos (x)", "not a sound gradebook"),
        ("CREATE TABLE photos (x); PRAGMA user_version = 2", "not a sound gradebook"),
        (
            "CREATE TABLE submissions (x); CREATE TABLE results (x); PRAGMA user_version = 1",
            "not a sound grade",
        ),
        ("CREATE TABLE submissions (source); PRAGMA user_version = 99", "version 99.* update hookedu"),
    ],
)
def test_somebody_elses_database_is_left_alone(stubs, tmp_path, sql, says):
    connection = sqlite3.connect(tmp_path / "grades.db")
    connection.executescript(sql)
    connection.close()
    data = (tmp_path / "grades.db").read_bytes()
    with pytest.raises(CourseError, match=says):
        graded(stubs, tmp_path)
    assert (tmp_path / "grades.db").read_bytes() == data


def test_folders_that_cannot_be_used_are_named(stubs, tmp_path):
    (tmp_path / "file").write_text("")
    for folder, out, said in (
        (stubs, tmp_path / "file", "cannot be written to"),
        (stubs, tmp_path / "file" / "below", "cannot be written to"),
        (tmp_path / "nowhere", tmp_path / "out", "There is no"),
        (tmp_path / "file", tmp_path / "out", "neither a folder nor a zip"),
    ):
        with pytest.raises(CourseError, match=said):
            graded(folder, out)
    assert not (tmp_path / "out").exists(), "nothing to grade, nothing to write"


def test_names_are_neither_formulas_nor_markup(tmp_path):
    for name in ("=1+1", "@x", "[red]r[b]", "张三", "a\nb"):
        nb.hand_in(tmp_path / "class" / name / FILE, nb.handed_out())
    _, rows, shown = graded(tmp_path / "class", tmp_path / "out")
    assert set(csv_rows(tmp_path / "out")) == {"'=1+1", "'@x", "[red]r[b]", "张三", r"a\nb"}
    assert "[red]r[b]" in shown and "张三" in shown and len(rows) == 5
    assert (tmp_path / "out" / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf"), "Excel needs it"


def test_the_table_cuts_no_name_and_no_points_at_80_columns():
    students = ("ann", "Ada Lovelace-Byron of Wimbledon and Ockham (Moodle 123456)", "李雷" * 20, "q" * 99)
    results = tuple(Result(f"10.{n}", "correct", 10, points=n) for n in range(1, 6))
    rows = [
        Row(f"{s}/10.ipynb", s, "10", "", status, 50, results=results)
        for s, status in zip(students, Status, strict=False)
    ]
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal._table(rows))
    shown = console.file.getvalue()
    assert shown.count("q") == 99 and shown.count("李") == shown.count("雷") == 20
    assert all(word in shown for word in ["ann", "Ada", "Wimbledon", "Ockham", "(Moodle", "123456)"])
    assert shown.count("1/10 2/10 3/10 4/10 5/10") == 4 and shown.count("15/50") == 4


def test_a_large_class_gets_a_summary_and_who_needs_a_look(tmp_path):
    for n in range(terminal.WHOLE_TABLE + 1):
        nb.hand_in(tmp_path / "class" / f"fine-{n:03}" / FILE, nb.handed_out())
    for n in range(terminal.ATTENTION + 2):
        nb.hand_in(tmp_path / "class" / f"empty-{n:03}" / FILE, b"")
    _, _, shown = graded(tmp_path / "class", tmp_path / "out")
    assert "fine-" not in shown and "empty-000" in shown
    assert f"empty-{terminal.ATTENTION:03}" not in shown and "2 more need a look" in shown
    assert re.search(rf"not attempted\W+{terminal.WHOLE_TABLE + 1}\s", shown)


def test_a_lesson_that_is_not_built_is_reported(stubs, tmp_path, monkeypatch):
    elsewhere = [dataclasses.replace(lesson, root=tmp_path) for lesson in catalog.lessons()]
    monkeypatch.setattr(catalog, "lessons", lambda: elsewhere)
    with pytest.raises(CourseError, match="hookedu build"):
        graded(stubs, tmp_path / "out")


# --- defects of the grader, and being stopped -----------------------------------------------------------------


def test_a_judge_that_breaks_costs_its_exercise_and_says_whose_fault_it_is():
    def broken(case):
        raise ZeroDivisionError("a defect of ours")

    key = key_of(catalog.find("02"))
    first = dataclasses.replace(key.exercises[0], key=broken)
    key = dataclasses.replace(key, exercises=(first, *key.exercises[1:]))
    records = {
        "02.1": {"status": "observed", "observations": [{"dict": []}]},
        "02.2": {"status": "wrong_type", "got": "int"},
    }
    ran = Run(records)
    status, results = batch._judged(key, ("02.1", "02.2"), {"02.1": (1,), "02.2": (2,)}, ran)
    assert status is Status.GRADER_ERROR and "a defect of ours" in ran.notes[0].en
    assert [r.outcome for r in results] == [LOST, "incorrect", "not_attempted", "not_attempted"]


def test_a_setup_that_fails_is_our_fault():
    key = dataclasses.replace(key_of(catalog.find("02")), setup=("raise RuntimeError('ours')",))
    plan = Plan((Step("def watch(y, seen): pass", ("02.1",)),), ())
    warm = set()
    with contextlib.closing(Sandbox(True, 120)) as sandbox:
        for _ in range(2):
            with ThreadPoolExecutor(1) as pool:
                arguments = plan, key.setup, {"02.1": 1}, Limits(), sandbox, threading.Event()
                ran = pool.submit(run, *arguments).result()
            assert ran.status is Status.GRADER_ERROR and "ours" in ran.notes[0].en
            warm.add(sandbox._process)
    assert len(warm) == 1, "the warm process outlives the thread that started it"


@pytest.mark.parametrize(
    ("setup", "limits", "zh", "en"),
    [
        ("import os; os._exit(3)", Limits(), "退出码 3", "exit code 3"),
        ("import time; time.sleep(60)", Limits(startup=0.5), "0.5 秒", "0.5 seconds"),
    ],
    ids=["exits", "waits"],
)
def test_a_process_that_does_not_start_is_reported_in_both_languages(setup, limits, zh, en):
    plan = Plan((Step("def watch(y, seen): pass", ("02.1",)),), ())
    with contextlib.closing(Sandbox(True, 120)) as sandbox:
        ran = run(plan, (setup,), {"02.1": 1}, limits, sandbox, threading.Event())
    assert ran.status is Status.GRADER_ERROR
    assert zh in ran.notes[0].zh and en in ran.notes[0].en and en not in ran.notes[0].zh


def test_what_the_warm_process_started_ends_with_it():
    plan = Plan((Step("while True: pass", ("02.1",)),), ())
    with contextlib.closing(Sandbox(True, 120)) as sandbox, ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, plan, (), {"02.1": 1}, Limits(), sandbox, threading.Event())
        limit, warm = time.monotonic() + 60, None
        while warm is None:  # until the loop and its watcher run as its children
            assert time.monotonic() < limit and not running.done()
            time.sleep(0.05)
            started = descendants(sandbox._process.pid) if sandbox._process else {}
            warm = next((pid for pid in started if len(descendants(pid)) == 2), None)
        os.kill(warm, signal.SIGKILL)
        assert running.result().status is Status.KILLED
        assert_ended(started)


def assert_ended(started: dict[int, str]) -> None:
    """Wait until processes (process id -> start time) have ended: a namespace takes a moment to disappear."""
    limit = time.monotonic() + 20
    while left := [pid for pid, born in started.items() if birth(pid) == born]:
        assert time.monotonic() < limit, left
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle_it_keeps_what_is_finished_and_leaves_nothing_running(tmp_path, how, request):
    nb.hand_in(tmp_path / "class" / "a-stub" / FILE, nb.handed_out())
    for n in range(3):
        nb.hand_in(tmp_path / "class" / f"loop-{n}" / FILE, nb.answered({"02.1": "while True: pass"}))
    code = (
        "import signal, typer; from hookedu.grading.command import grade_command\n"
        # A shell makes processes in the background ignore SIGINT, and the grader would inherit that from the tests.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "app = typer.Typer(); app.command()(grade_command); app()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "class", "--out", tmp_path / "out", "--time-limit", "600"],
        env=os.environ | {"PYTHONPATH": str(catalog.ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=(errors := open(tmp_path / "errors", "w+")),  # noqa: SIM115 - closed at the end
    )
    request.addfinalizer(process.kill)
    request.addfinalizer(errors.close)
    limit = time.monotonic() + 120
    started = {}  # bubblewrap, the warm process, one loop and its watcher
    while not (len(started) >= 4 and (tmp_path / "out" / "grades.db").exists() and table(tmp_path / "out")):
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.1)
        started = descendants(process.pid)
    process.send_signal(how)
    assert process.wait(timeout=60) != 0
    assert [(r["student"], r["status"]) for r in table(tmp_path / "out")] == [("a-stub", "not_attempted")]
    if how != signal.SIGKILL:  # after SIGKILL the next run writes grades.csv
        assert list(csv_rows(tmp_path / "out")) == ["a-stub"]
        errors.seek(0)
        says = errors.read()
        assert "the same command goes on with the rest" in says and "Traceback" not in says
    assert_ended(started)
