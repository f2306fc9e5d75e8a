"""The real command, killed by SIGKILL again and again: the same command goes on where it stopped, with `--watch` too.

In the end the gradebook has every row once, as expected, and none was graded a second time. An ordinary test run kills
it three times; `make scale` ten times, in a larger class.
"""

import contextlib
import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from hookedu import catalog
from tests.grading.classroom import SEED, make_class
from tests.grading.processes import birth, descendants

pytestmark = [pytest.mark.xdist_group("grading-killed"), pytest.mark.isolated]
PATIENCE = 300  # seconds for what must happen
KILLS = [(3, 12), pytest.param(10, 80, marks=pytest.mark.scale)]  # and students


def rows(out: Path) -> dict[str, str]:
    """Return when each row of the gradebook was graded, by its source and attempt."""
    if not (out / "grades.db").exists():
        return {}
    with contextlib.closing(sqlite3.connect(out / "grades.db", timeout=60)) as book:
        try:
            found = book.execute("SELECT source, attempt, graded_at FROM submissions").fetchall()
        except sqlite3.OperationalError:  # it has just been created
            return {}
    return {f"{source} {attempt}": graded_at for source, attempt, graded_at in found}


def until(condition, process) -> None:
    """Wait for a condition while the command runs."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.01)


def kill(process) -> None:
    """Kill the command alone, and wait until all that it started has ended."""
    started = descendants(process.pid)
    assert process.poll() is None, "it was still grading"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    limit = time.monotonic() + PATIENCE
    while left := [pid for pid, born in started.items() if birth(pid) == born]:
        assert time.monotonic() < limit, f"{left} outlived the command"
        time.sleep(0.05)


def reported(out: Path, students: int) -> bool:
    """Check whether the table and the report of `--watch` contain everybody."""
    if not (out / "report.html").exists():
        return False
    report = (out / "report.html").read_text(encoding="utf-8")
    return len(table(out)) == students and all(student in report for student in table(out))


def table(out: Path) -> Counter:
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return Counter(row["student"] for row in csv.DictReader(file))


@pytest.mark.parametrize("watch", [False, True], ids=["once", "watch"])
@pytest.mark.parametrize(("kills", "students"), KILLS)
def test_kills_lose_nothing_and_repeat_nothing(tmp_path, request, kills, students, watch):
    expected = make_class(tmp_path / "made", students)
    folder, out, dice = tmp_path / "class", tmp_path / "out", random.Random(f"{SEED} {watch}")
    arriving = [path.name for path in sorted((tmp_path / "made").iterdir())]
    folder.mkdir()

    def hand_in(count: int) -> None:
        for _ in range(min(count, len(arriving))):
            name = arriving.pop()
            (tmp_path / "made" / name).rename(folder / name)

    def start():
        command = [sys.executable, "-m", "hookedu", "grade", folder, "--out", out, "--time-limit", "60"]
        process = subprocess.Popen(
            [*command, "--jobs", "2", *(["--watch"] if watch else [])],
            env=os.environ | {"PYTHONPATH": str(catalog.ROOT), "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        request.addfinalizer(process.kill)
        return process

    # So many rows there are before a kill; a moment later, also of chance, it comes.
    moments = sorted(dice.sample(range(students - 4), kills))
    kept: dict[str, str] = {}
    hand_in(students if not watch else students // 2)
    for number, moment in enumerate(moments):
        process = start()
        if watch:  # some arrive between the kills, the rest in time for the row that the next kill waits for
            hand_in(max(students // (2 * kills), moment + 4 - (students - len(arriving))))
        until(lambda moment=moment: len(rows(out)) >= moment, process)
        time.sleep(
            dice.uniform(0, 0.3) if number else dice.uniform(0, 3)
        )  # the first may be before the first row
        kill(process)
        before, kept = kept, rows(out)
        assert before.items() <= kept.items(), "what was graded before an earlier kill stands"
    hand_in(students)
    process = start()
    if watch:
        until(lambda: reported(out, students), process)
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0 and "Traceback" not in said, said
    assert kept.items() <= rows(out).items(), "what was graded before the kills stands"
    assert table(out) == Counter(expected.keys()), "each student has one row"
    with contextlib.closing(sqlite3.connect(out / "grades.db")) as book:
        assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert book.execute("PRAGMA foreign_key_check").fetchall() == []
        ends = book.execute("SELECT student, attempt, status, points FROM submissions").fetchall()
        points = book.execute("SELECT source, exercise, points FROM results ORDER BY 1, 2").fetchall()
    assert sorted(ends) == sorted((s, 1, row.status.value, sum(row.points)) for s, row in expected.items())
    got: dict[str, list[int]] = {}
    for source, _, value in points:
        got.setdefault(source.split("/")[0], []).append(value)
    assert got == {student: list(row.points) for student, row in expected.items()}
