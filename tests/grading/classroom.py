"""Generate a class of any size from a seed: correct submissions, known mistakes and broken ones."""

import random
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from hookedu.exercises import of_lesson
from hookedu.grading.rows import Status
from tests.answers import answers
from tests.grading import notebooks as nb

SEED = 2026
FILE = "02_tensor_hooks.ipynb"


@dataclass(frozen=True)
class Expected:
    """Expected contents of a row."""

    status: Status
    points: tuple[int, ...] = (0, 0, 0, 0)
    message: tuple[int, str] | None = None  # index of the exercise, message id


def make_class(folder: Path, students: int) -> dict[str, Expected]:
    """Write the submissions of a class into a folder, and return the expected row of each student."""
    dice, expected = random.Random(SEED), {}
    exercises = of_lesson(nb.LESSON)
    full = tuple(exercise.points for exercise in exercises)
    mistakes = [a for a in answers() if a.exercise.startswith(nb.LESSON) and a.mistake]
    whole = nb.json.dumps(nb.answered(nb.right()), ensure_ascii=False).encode()
    broken = {
        "loses the process": ({"02.3": "import os\nos._exit(3)"}, Expected(Status.KILLED, (*full[:2], 0, full[3]))),
        "crashes": ({"02.2": "import ctypes\nctypes.string_at(0)"}, Expected(Status.KILLED, (full[0], 0, *full[2:]))),
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
            source = mistake.typed()
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


def stored(out: Path) -> list[tuple]:
    """Return everything in the gradebook except times."""
    connection = sqlite3.connect(out / "grades.db")
    rows = []
    for table in ("submissions", "results"):
        names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        kept = ", ".join(name for name in names if name not in ("seconds", "graded_at"))
        rows += connection.execute(f"SELECT {kept} FROM {table} ORDER BY 1, 2").fetchall()
    connection.close()
    return rows
