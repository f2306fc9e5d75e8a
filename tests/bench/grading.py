"""Benchmark of grading a class against nbgrader, otter-grader and the minimum possible cost.

    python tests/bench/grading.py [students]     40 by default; needs uv and the package index for the two others
    python tests/bench/grading.py memory         memory of the grader with 100 and with 10,000 submissions (minutes)

1. The same submissions of one lesson go through `nbgrader autograde`, `otter run` and `hookedu grade`, one core each,
   in turn: in each of four rounds the other tools grade a quarter of the class (they take seconds per submission) and
   hookedu all of it. The result is the minimum time per submission over all rounds. For hookedu it is the time of a
   class five times as large, minus the time of the class, divided by the difference in size; this excludes the
   startup, which is paid once and reported separately.
2. A warm grader with one job and with two jobs, against the floor: the minimum that a warm process can do, which is to
   fork, run the same cells and probes, and exit, without isolation. Two floors side by side, which share nothing but
   the machine, show how much two jobs can gain on it. Half the class is graded in many short rounds, because both
   processors are seldom undisturbed for long.

Bounds: 100 times nbgrader's throughput, 1.5 times the floor, 1.7 times the throughput with two jobs.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from hookedu import catalog
from hookedu.exercises import of_lesson
from hookedu.grading import batch, matching, reading
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.collect import collect
from hookedu.grading.limits import Limits
from hookedu.grading.rows import Status
from hookedu.grading.run import namespaces, runner, worker
from tests.grading import notebooks as nb

ROUNDS, TIMES, SHORT_ROUNDS = 4, 5, 50
LESSON = catalog.find(nb.LESSON)
FILE = f"{LESSON.file}.ipynb"
ROOT = catalog.ROOT
ENV = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
# Otherwise every kernel that the other tools start would recompile torch's Python files.
ENV.pop("PYTHONDONTWRITEBYTECODE", None)
FOLDER = Path(tempfile.mkdtemp(prefix="hookedu-bench-"))

Grade = Callable[[list[dict]], None]


def main(students: int) -> None:
    notebooks = [nb.answered(nb.right(n)) for n in range(students)]
    others(notebooks)
    warm(notebooks[: max(2, students // 2)])


def others(notebooks: list[dict]) -> None:
    """Run part 1: whole commands."""
    quarter = notebooks[: max(1, len(notebooks) // ROUNDS)]
    contenders: dict[str, tuple[Grade, list[dict]]] = {}
    for name, make in (("nbgrader", nbgrader), ("otter", otter)):
        try:
            grade = make()
            grade(notebooks[:1])  # the first run compiles the bytecode of all its packages
            contenders[name] = (grade, quarter)
        except (OSError, subprocess.CalledProcessError) as error:  # report it
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines() or [""]
            print(f"  {name} is left out: {said[-1][:150]}", flush=True)
    contenders |= {"hookedu": (hookedu, notebooks), "hookedu, 5 classes": (hookedu, notebooks * TIMES)}
    best = minima({name: partial(timed, *contender) for name, contender in contenders.items()}, ROUNDS)
    each = {n: best[n] / len(quarter) for n in ("nbgrader", "otter") if n in best}
    each["hookedu"] = (best["hookedu, 5 classes"] - best["hookedu"]) / (len(notebooks) * (TIMES - 1))
    report("commands", each, "hookedu")
    print(f"  the start of `hookedu grade`: {best['hookedu'] - len(notebooks) * each['hookedu']:.1f} s, once")
    if "nbgrader" in each:
        bound("throughput against nbgrader", each["nbgrader"] / each["hookedu"], 100, at_least=True)


def warm(notebooks: list[dict]) -> None:
    """Run part 2: warm processes."""
    path = FOLDER / "floor.json"
    path.write_text(json.dumps(notebooks))
    folder = handed_in(notebooks, "{}/" + FILE)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(contextlib.closing(batch._Local(True, Limits())))
        floors = [stack.enter_context(a_floor(path)) for _ in range(2)]
        contenders = {
            "1 job": partial(graded, folder, place, 1),
            "2 jobs": partial(graded, folder, place, 2),
            "floor": partial(forked, floors[:1]),
            "2 floors": partial(forked, floors),
        }
        best = minima(contenders, SHORT_ROUNDS)
    each = {name: seconds / len(notebooks) for name, seconds in best.items()}
    each["2 floors"] /= 2  # each floor runs the whole class
    report("warm", each, "1 job")
    bound("time against the floor", each["1 job"] / each["floor"], 1.5, at_least=False)
    bound("throughput of 2 jobs against 1", each["1 job"] / each["2 jobs"], 1.7, at_least=True)
    print(f"  throughput of 2 floors against 1, the machine's own: {each['floor'] / each['2 floors']:.2f}")


def minima(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the minimum of each contender over all rounds; within a round they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for round_ in range(rounds):
        for name, run in contenders.items():
            best[name] = min(best[name], run())
        said = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in best.items())
        print(f"  round {round_ + 1} of {rounds}: {said}", flush=True)
    return best


def report(title: str, each: dict[str, float], against: str) -> None:
    print(f"\none submission of lesson {LESSON.id}, {title}")
    for name, seconds in sorted(each.items(), key=lambda item: -item[1]):
        print(f"  {name:<10} {seconds * 1000:9.1f} ms   {seconds / each[against]:7.2f} × {against}")


def bound(what: str, ratio: float, limit: float, at_least: bool) -> None:
    kept = ratio >= limit if at_least else ratio <= limit
    print(
        f"  {what}: {ratio:.2f}, {'at least' if at_least else 'at most'} {limit}: {'kept' if kept else 'MISSED'}"
    )


def timed(run: Grade, class_: list[dict]) -> float:
    begun = time.perf_counter()
    run(class_)
    return time.perf_counter() - begun


def handed_in(class_: list[dict], place: str) -> Path:
    """Write the notebooks of a class to a new folder; `place` is the path, with {} for the student's name."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    for number, notebook in enumerate(class_):
        nb.hand_in(folder / place.format(f"student-{number:05}"), notebook)
    return folder


def call(*command: object, cwd: Path = FOLDER) -> str:
    path = f"{Path(str(command[0])).parent}{os.pathsep}{ENV['PATH']}"  # nbgrader looks up alembic on PATH
    run = subprocess.run(
        list(map(str, command)), cwd=cwd, env=ENV | {"PATH": path}, capture_output=True, text=True, check=True
    )
    return run.stdout


def environment(name: str, *packages: str) -> Path:
    """Return the bin folder of a new environment with hookedu, its pinned dependencies and more packages."""
    folder = FOLDER / name
    call("uv", "venv", "-q", "--python", sys.executable, folder)
    locked = (ROOT / "requirements.lock").read_text().splitlines()
    constraints = FOLDER / f"{name}.txt"  # otter needs an older setuptools than the lock has
    constraints.write_text("\n".join(line for line in locked if not line.startswith("setuptools")))
    call("uv", "pip", "install", "-q", "--python", folder / "bin/python", "-c", constraints, ROOT, *packages)
    call(folder / "bin/python", "-m", "ipykernel", "install", "--prefix", folder)
    return folder / "bin"


def hookedu(class_: list[dict]) -> None:
    folder = handed_in(class_, "class/{}/" + FILE)
    try:
        call(
            sys.executable,
            "-m",
            "hookedu",
            "grade",
            folder / "class",
            "--out",
            folder / "out",
            "--jobs",
            1,
        )
        graded = (folder / "out" / "grades.csv").read_text(encoding="utf-8-sig").count(",graded,")
        assert graded == len(class_), f"{graded} of {len(class_)} graded"
    finally:
        shutil.rmtree(folder)


def nbgrader() -> Grade:
    programs = environment("nbgrader", "nbgrader")

    def grade(class_: list[dict]) -> None:
        folder = handed_in(class_, "submitted/{}/ps1/" + FILE)
        (folder / "source/ps1").mkdir(parents=True)
        shutil.copy(LESSON.notebook, folder / "source/ps1")
        call(programs / "nbgrader", "generate_assignment", "ps1", cwd=folder)
        call(programs / "nbgrader", "autograde", "ps1", "--create", cwd=folder)
        assert len(list(folder.glob("autograded/*/ps1/*.ipynb"))) == len(class_)

    return grade


def otter() -> Grade:
    programs = environment("otter", "otter-grader", "setuptools<81")
    with zipfile.ZipFile(FOLDER / "autograder.zip", "w") as archive:
        archive.writestr("otter_config.json", json.dumps({"kernel": "python3", "lang": "python"}))
        for exercise in of_lesson(LESSON.id):
            asked = f'>>> check("{exercise.id}", {exercise.answer}).points == {exercise.points}\nTrue'
            suites = [{"cases": [{"code": asked, "hidden": False, "locked": False}], "type": "doctest"}]
            test = {"name": exercise.slug, "points": exercise.points, "suites": suites}
            archive.writestr(f"tests/{exercise.slug}.py", f"OK_FORMAT = True\ntest = {test!r}\n")

    def grade(class_: list[dict]) -> None:
        folder = handed_in(class_, "{}/" + FILE)
        full = sum(exercise.points for exercise in of_lesson(LESSON.id))
        for student in sorted(folder.iterdir()):
            call(
                programs / "otter",
                "run",
                student / FILE,
                "-a",
                FOLDER / "autograder.zip",
                "-o",
                student,
                "--no-logo",
            )
            tests = json.loads((student / "results.json").read_text())["tests"]
            assert sum(test.get("score", 0) for test in tests) == full, tests

    return grade


def graded(folder: Path, place: batch._Local, jobs: int) -> float:
    """Return the seconds that `hookedu grade` takes for a class, without startup and report."""
    out = Path(tempfile.mkdtemp(dir=FOLDER))
    submissions = collect(folder).submissions
    grader = batch._Grader(batch._keys(), {}, place, True, "")
    with contextlib.closing(Gradebook(out)) as gradebook:
        begun = time.perf_counter()
        rows = batch._all(grader, submissions, gradebook, jobs, Console(file=io.StringIO()))
        seconds = time.perf_counter() - begun
    shutil.rmtree(out)
    assert all(row.status is Status.GRADED and row.points == row.max_points for row in rows)
    return seconds


def a_floor(path: Path) -> subprocess.Popen:
    """Start a process that is as warm as the grader's."""
    code = "import sys; sys.argv[0] = ''; from tests.bench import grading as bench; bench.forks(sys.argv[1])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    process = subprocess.Popen([sys.executable, "-c", code, path], cwd=ROOT, env=ENV, **pipes)
    assert process.stdout.readline() == "warm\n"
    return process


def forked(floors: list[subprocess.Popen]) -> float:
    """Start several floors together and return the seconds of the slowest."""
    for process in floors:
        process.stdin.write("go\n")
    return max(float(process.stdout.readline()) for process in floors)


def forks(path: str) -> None:
    """For each line on stdin, fork, run the cells and the probes and exit, for every submission of the class."""
    worker.warm_up()
    key = matching.key_of(LESSON)
    jobs = []
    for number, notebook in enumerate(json.loads(Path(path).read_text())):
        plan = matching.plan(reading.read_cells(json.dumps(notebook).encode()), key)
        probes, sources = zip(*((step.probes, step.source) for step in plan.steps), strict=True)
        job = {"setup": key.setup, "probes": probes, "seeds": runner.seeds_for(plan, str(number), "")}
        jobs.append((job, sources))
    worker.prepare(jobs[0][0])
    namespaces.settle()
    print("warm", flush=True)
    while sys.stdin.readline():
        begun = time.perf_counter()
        for job, sources in jobs:
            if os.fork() == 0:
                worker._Submission(job, sources).run(lambda message: None, lambda: None)
                os._exit(0)
            assert os.wait()[1] == 0
        print(time.perf_counter() - begun, flush=True)


def memory() -> None:
    """Measure the peak memory of the grader's own process.

    The submissions raise at once, each in a fork.
    """
    code = (
        "import sys, resource; from pathlib import Path; from hookedu.grading.batch import grade\n"
        "grade(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    taken = {}
    for students in (100, 1_000, 10_000):
        folder = handed_in([{"cells": [nb.code("def watch(y, seen): pass")]}] * students, "class/{}/" + FILE)
        said = call(sys.executable, "-c", code, folder / "class", folder / "out")
        taken[students] = int(said.split()[-1]) / 1024
        print(f"  {students:6} submissions: {taken[students]:7.1f} MiB", flush=True)
        shutil.rmtree(folder)
    bound("memory of 10,000 against 100", taken[10_000] / taken[100], 1.05, at_least=False)


if __name__ == "__main__":
    try:
        memory() if sys.argv[1:] == ["memory"] else main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
