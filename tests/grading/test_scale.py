"""Grading a whole class: every row is as expected, also if the grader is killed and resumed.

An ordinary test run grades a small class; `make scale` grades a class of a thousand and kills the grader ten times.
"""

import io
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
from rich.console import Console

from hookedu import catalog
from hookedu.grading.batch import grade
from tests.grading.classroom import SEED, make_class, stored
from tests.grading.processes import birth, descendants

pytestmark = [pytest.mark.xdist_group("grading-scale"), pytest.mark.isolated]
OPTIONS = {"time_limit": 60, "seed": SEED}


@dataclass(frozen=True)
class Size:
    """Size of a class, and how often the grader is killed."""

    students: int
    kills: int
    between: tuple[float, float]  # range of the seconds before a kill

    def __str__(self) -> str:
        return f"{self.students}"


SIZES = [
    Size(40, 2, (0.2, 0.6)),
    pytest.param(Size(1000, 10, (0.5, 4.0)), marks=pytest.mark.scale),
]


@pytest.fixture(scope="module", params=SIZES, ids=str)
def klass(request, tmp_path_factory):
    """Generate a class; return it with the expected rows and the rows of an uninterrupted, serial run."""
    root = tmp_path_factory.mktemp("scale")
    expected = make_class(root / "class", request.param.students)
    done = grade(root / "class", root / "out", jobs=1, console=Console(file=io.StringIO()), **OPTIONS).rows
    assert len(done) == request.param.students
    return request.param, root / "class", root / "out", expected, done


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
    """Kill the grader with SIGKILL and resume it, with the same seed, running two submissions at a time.

    The final gradebook equals that of the uninterrupted run. The grader writes what it runs to its standard error,
    which shows that only the submissions in progress at a kill run a second time.
    """
    size, folder, out, _, _ = klass
    dice, jobs, run_again, ended = random.Random(SEED), 2, 0, False
    seen: set[str] = set()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hookedu.grading import batch\n"
        "run = batch.run\n"
        "def told(plan, setup, seeds, *rest):\n"
        "    print(min(seeds.values())[0], file=sys.stderr, flush=True)\n"
        "    return run(plan, setup, seeds, *rest)\n"
        "batch.run = told\n"
        f"batch.grade(Path(sys.argv[1]), Path(sys.argv[2]), jobs={jobs}, **{OPTIONS!r})\n"
    )
    for kill in range(size.kills + 1):
        process = subprocess.Popen(
            [sys.executable, "-c", code, folder, tmp_path / "out"],
            env=os.environ | {"PYTHONPATH": str(catalog.ROOT), "TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        request.addfinalizer(process.kill)
        ran = {process.stderr.readline().strip()}  # submissions are running from here on
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
