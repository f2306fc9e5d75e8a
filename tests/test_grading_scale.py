"""A whole class: every row as expected, whatever stops the grader half way, and the same rows however it ran.

The ordinary run grades a small class; `make scale` grades one of a thousand and kills the grader ten times.
"""

import io
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from hookedu import course
from hookedu.exercises import of_lesson
from hookedu.grading.batch import grade
from hookedu.grading.model import Status
from tests import grading_notebooks as nb
from tests.answers import answers
from tests.grading_watch import birth, descendants

pytestmark = pytest.mark.xdist_group("grading-scale")
FILE = "02_tensor_hooks.ipynb"
SEED = 2026
OPTIONS = {"time_limit": 60, "seed": SEED}


@dataclass(frozen=True)
class Size:
    """How large a class, how often the grader is killed, and how far apart, in seconds."""

    students: int
    kills: int
    between: tuple[float, float]

    def __str__(self) -> str:
        return f"{self.students}"


SIZES = [
    Size(40, 2, (0.2, 0.6)),
    pytest.param(Size(1000, 10, (0.5, 4.0)), marks=pytest.mark.scale),
]


@dataclass(frozen=True)
class Expected:
    """What must stand in a row."""

    status: Status
    points: tuple[int, ...] = (0, 0, 0, 0)
    message: tuple[int, str] | None = None  # of which exercise, which message


def make_class(folder: Path, students: int) -> dict[str, Expected]:
    """Generate a class of right, wrong and broken submissions, and what must come of each."""
    dice, expected = random.Random(SEED), {}
    exercises = of_lesson(nb.LESSON)
    full = tuple(exercise.points for exercise in exercises)
    mistakes = [a for a in answers() if a.exercise.startswith(nb.LESSON) and a.mistake]
    whole = nb.json.dumps(nb.answered(nb.right()), ensure_ascii=False).encode()
    broken = {
        "loses the process": ({"02.3": "import os\nos._exit(3)"}, Expected(Status.KILLED, (*full[:2], 0, 0))),
        "crashes": ({"02.2": "import ctypes\nctypes.string_at(0)"}, Expected(Status.KILLED, (full[0], 0, 0, 0))),
        "raises": ({"02.1": "1 / 0"}, Expected(Status.GRADED, (0, *full[1:]), (0, "raised"))),
        "syntax": ({"02.4": "def ("}, Expected(Status.GRADED, (*full[:3], 0), (3, "raised"))),
        "forges": ({"02.1": "import os\nfor fd in range(3, 256):\n  try: os.write(fd, b'{}\\n')\n  except OSError: pass"}, Expected(Status.TAMPERED)),
        "empty": (b"", Expected(Status.UNREADABLE)),
        "truncated": (whole[:3000], Expected(Status.UNREADABLE)),
        "another shape": (b'{"cells": 3}', Expected(Status.UNREADABLE)),
        "untouched": ({}, Expected(Status.NOT_ATTEMPTED)),
    }  # fmt: skip
    for number in range(students):
        kind = dice.random()
        if kind < 0.4:
            content, row = nb.right(dice.randrange(9)), Expected(Status.GRADED, full)
        elif kind < 0.8:
            mistake = dice.choice(mistakes)
            place = [exercise.id for exercise in exercises].index(mistake.exercise)
            source = nb.typed(mistake, exercises[place].answer)
            content = nb.right(dice.randrange(9)) | {mistake.exercise: source}
            points = (*full[:place], mistake.points, *full[place + 1 :])
            row = Expected(Status.GRADED, points, (place, mistake.mistake))
        else:
            content, row = broken[dice.choice(list(broken))]
            if isinstance(content, dict) and content:
                content = nb.right(dice.randrange(9)) | content
        student = f"student-{number:04}"
        expected[student] = row
        nb.hand_in(folder / student / FILE, nb.answered(content) if isinstance(content, dict) else content)
    return expected


@pytest.fixture(scope="module", params=SIZES, ids=str)
def klass(request, tmp_path_factory):
    """A class, what must come of it, and the rows of an undisturbed run, one submission at a time."""
    root = tmp_path_factory.mktemp("scale")
    expected = make_class(root / "class", request.param.students)
    done = grade(root / "class", root / "out", jobs=1, console=Console(file=io.StringIO()), **OPTIONS).rows
    assert len(done) == request.param.students
    return request.param, root / "class", root / "out", expected, done


def stored(out: Path) -> list[tuple]:
    """All that the gradebook holds, but times."""
    connection = sqlite3.connect(out / "grades.db")
    rows = []
    for table in ("submissions", "results"):
        names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        kept = ", ".join(name for name in names if name not in ("seconds", "graded_at"))
        rows += connection.execute(f"SELECT {kept} FROM {table} ORDER BY 1, 2").fetchall()
    connection.close()
    return rows


def test_every_row_is_as_expected(klass):
    _, _, _, expected, done = klass
    wrong = []
    for row in done:
        must = expected[row.student]
        got = tuple(result.points for result in row.results)
        message = must.message and row.results[must.message[0]].message_id == must.message[1]
        if (row.status, got) != (must.status, must.points) or message is False:
            wrong.append((must, row))
    assert wrong == []
    assert {row.student for row in done} == expected.keys()


def test_killed_at_any_moment_it_goes_on_where_it_stopped(klass, tmp_path, request):
    """Killed with SIGKILL and resumed, two submissions at a time, with the same seed: the gradebook is that of the
    undisturbed run. What a grader runs it writes to its standard error: only what was in the works when it was
    killed is run a second time."""
    size, folder, out, _, _ = klass
    dice, jobs, run_again, ended = random.Random(SEED), 2, 0, False
    seen: set[str] = set()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hookedu.grading import batch\n"
        "run = batch.run\n"
        "def told(plan, key, seeds, *rest):\n"
        "    print(min(seeds.values()), file=sys.stderr, flush=True)\n"
        "    return run(plan, key, seeds, *rest)\n"
        "batch.run = told\n"
        f"batch.grade(Path(sys.argv[1]), Path(sys.argv[2]), jobs={jobs}, **{OPTIONS!r})\n"
    )
    for kill in range(size.kills + 1):
        process = subprocess.Popen(
            [sys.executable, "-c", code, folder, tmp_path / "out"],
            env=os.environ | {"PYTHONPATH": str(course.ROOT), "TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        request.addfinalizer(process.kill)
        ran = {process.stderr.readline().strip()}  # from here on submissions run
        if kill < size.kills:
            time.sleep(dice.uniform(*size.between))
            ended = process.poll() is not None
            started = descendants(process.pid)
            process.send_signal(signal.SIGKILL)
        ran |= set(process.stderr.read().split())
        process.wait()
        run_again += len(seen & ran)
        seen |= ran
        limit = time.monotonic() + 20
        while left := [pid for pid, born in started.items() if birth(pid) == born]:
            assert time.monotonic() < limit, f"{left} outlived the grader"
            time.sleep(0.05)
    assert process.returncode == 0
    assert not ended, "the last kill came when all was done: make the class larger or the kills nearer"
    assert run_again <= jobs * size.kills
    assert stored(tmp_path / "out") == stored(out)
