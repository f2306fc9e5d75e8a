"""Grade a class: every submission results in one row, and no submission aborts the batch."""

import contextlib
import difflib
import hashlib
import itertools
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from hookedu import catalog, exercises
from hookedu.catalog import CourseError
from hookedu.exercises import Exercise, Outcome
from hookedu.exercises.exercise import Verdict
from hookedu.exercises.feedback import Feedback
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import ObservationError
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Rules
from hookedu.grading.cleaning import clean, clean_name, one_form
from hookedu.grading.collect import Submission, collect
from hookedu.grading.limits import Limits
from hookedu.grading.matching import LessonKey, Plan, key_of, lesson_by_name, lesson_of, plan
from hookedu.grading.out import exports, terminal
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import LOST, Graded, Result, Row, Status, Unreadable, Written
from hookedu.grading.run.runner import BatchStopped, Run, run, seeds_for
from hookedu.grading.run.sandbox import Sandbox
from hookedu.language import Text

_POSIX_ONLY = Text(
    zh="评分需要 Linux 或 macOS：在 Windows 上无法限制学生代码用的内存和时间。可以在 WSL 里运行。",
    en="Grading needs Linux or macOS: on Windows the memory and time of learners' code cannot be limited. "
    "Run it inside WSL.",
)
_NOT_BUILT = Text(
    zh="课程笔记本还没有生成。请先运行 `hookedu build`。",
    en="The lessons are not built yet. Run `hookedu build` first.",
)
_NO_KEY = Text(
    zh="没有第 {id} 课的笔记本，请先运行 `hookedu build`",
    en="the notebook of lesson {id} is missing; run `hookedu build` first",
)
_OPEN = Text(zh="未隔离运行", en="run without isolation")
_BREAKS = Text(zh="评分程序自身出错：{error}", en="the grader itself failed: {error}")
_JUDGE_BREAKS = Text(zh="{id}：评判程序自身出错：{error}", en="{id}: the judge itself failed: {error}")
_BY_HAND = Text(zh="没有交；由教师登记", en="nothing was handed in; entered by the instructor")
_NO_STUDENT = Text(
    zh="没有叫 `{name}` 的学生。最接近的是：{near}。", en="There is no student `{name}`. The nearest: {near}."
)
_NO_OBSERVATION = Text(zh="{id} 的记录不可信：{error}", en="{id}: a record not to be trusted: {error}")


def grade(
    folder: Path,
    out: Path,
    *,
    jobs: int | None = None,
    time_limit: float = Limits.seconds,
    memory_limit: int = Limits.memory,
    again: bool = False,
    only: Sequence[str] = (),
    retry: bool = True,
    isolated: bool = True,
    seed: int | None = None,
    rules: Rules | None = None,
    dask: str | None = None,
    console: Console | None = None,
) -> Graded:
    """Grade every notebook in a folder or zip into `out`/grades.db and `out`/grades.csv.

    Ctrl-C ends all worker processes and keeps the rows that are finished.

    Parameters
    ----------
    folder : Path
        Folder or zip of submissions, see `collect`.
    out : Path
        Folder of the gradebook; created if missing.
    jobs : int, optional
        Number of submissions that run at the same time. By default one per processor; with Dask, as many as keep its
        workers busy.
    time_limit : float
        Seconds per submission.
    memory_limit : int
        MiB per submission.
    again : bool
        Also grade submissions whose bytes have not changed; by default their rows are left unchanged, unless the
        time, the memory or an error of the grader ended them.
    only : sequence of str
        Names of students: grade theirs alone, also what has not changed.
    retry : bool
        Grade again what the time, the memory or an error of the grader ended.
    isolated : bool
        Run each submission in its own sandbox. Without isolation, every row says so.
    seed : int, optional
        Two runs with the same seed give the same rows; by default the seed is fresh.
    rules : Rules, optional
        Changes to the rules that the gradebook keeps, see `grades`.
    dask : str, optional
        Address of a Dask scheduler whose workers run the submissions; the verdicts are still computed here.
    console : Console, optional
        Where progress and the closing table are printed; the standard output by default.

    Returns
    -------
    Graded
        The rows written, without their feedback.

    Raises
    ------
    CourseError
        For anything that the caller can fix: no notebooks, no sandbox on this machine, an unusable gradebook, an
        unreachable scheduler, Windows.
    """
    if os.name != "posix":
        raise CourseError(_POSIX_ONLY)
    console = console or Console()
    begun = time.monotonic()
    submissions, outside, aside = collect(Path(folder), Path(out))
    students = {submission.source: submission.student for submission in submissions}
    submissions = _of_students(submissions, only)
    keys = _keys()
    gradebook = Gradebook(Path(out))
    try:
        remarks = gradebook.follow(students)
        if rules:
            gradebook.change_rules(rules)
        limits = Limits(seconds=time_limit, memory=memory_limit)
        fresh = secrets.token_hex(16) if seed is None else str(seed)
        graded = {} if again or only else gradebook.graded(failed=not retry)
        with contextlib.closing(_backend(dask, isolated, limits)) as backend:
            grader = _Grader(keys, graded, backend, isolated, fresh)
            total = len(submissions)
            rows = _all(grader, submissions, gradebook, jobs or backend.jobs, console)
        courses = {lesson: key.fingerprint for lesson, key in keys.items()}
        remarks += gradebook.remarks(courses, {*students.values()})
    finally:
        try:
            exports.write_csv(gradebook)
        finally:
            gradebook.close()
    graded = Graded(tuple(rows), total - len(rows), time.monotonic() - begun)
    terminal.closing(console, graded, outside, aside, gradebook.csv, remarks)
    return graded


def _of_students(submissions: list[Submission], names: Sequence[str]) -> list[Submission]:
    """Return the submissions of these students, all of them if there are no names."""
    known = {submission.student for submission in submissions}
    names = [*map(one_form, names)]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
            raise CourseError(
                _NO_STUDENT.format(name=clean_name(name), near=", ".join(f"`{n}`" for n in near))
            )
    return [s for s in submissions if s.student in names] if names else submissions


def _backend(dask: str | None, isolated: bool, limits: Limits) -> "Backend":
    """Return the backend that runs the submissions: this machine, or a cluster."""
    if dask is None:
        return _Local(isolated, limits)
    from hookedu.grading.run.cluster import Cluster

    return Cluster(dask, isolated, limits)


class Backend(Protocol):
    """Interface of what runs submissions; `run` may be called from any number of threads."""

    jobs: int  # number of concurrent submissions that keeps the backend busy

    def run(
        self, plan: Plan, setup: tuple[str, ...], seeds: dict[str, tuple[int, ...]], stop: threading.Event
    ) -> Run:
        """Run one submission, as `runner.run` does."""
        ...

    def close(self) -> None:
        """Release all resources, and end the submissions that still run."""


class _Local:
    """Backend on this machine, with one warm process."""

    def __init__(self, isolated: bool, limits: Limits):
        self.jobs = os.cpu_count() or 1
        self._limits, self._sandbox = limits, Sandbox(isolated, limits.startup)
        self.close = self._sandbox.close

    def run(
        self, plan: Plan, setup: tuple[str, ...], seeds: dict[str, tuple[int, ...]], stop: threading.Event
    ) -> Run:
        return run(plan, setup, seeds, self._limits, self._sandbox, stop)


def _all(
    grader: "_Grader", submissions: list[Submission], gradebook: Gradebook, jobs: int, console: Console
) -> list[Row]:
    """Grade all submissions, and empty the list on the way.

    Otherwise the whole class would be in memory twice, as submissions and as rows.
    """
    rows = []
    submissions.reverse()
    waiting = (submissions.pop() for _ in range(len(submissions)))
    with terminal.progress(console) as bar, ThreadPoolExecutor(jobs) as pool:
        task = bar.add_task("", total=len(submissions))
        working = {pool.submit(grader, submission) for submission in itertools.islice(waiting, 2 * jobs)}
        try:
            while working:
                finished, working = wait(working, return_when=FIRST_COMPLETED)
                # Submitting everything up front would keep all pending and finished futures in memory.
                working |= {pool.submit(grader, s) for s in itertools.islice(waiting, len(finished))}
                for row in (future.result() for future in finished):
                    if row:
                        rows.append(gradebook.save(row).brief)
                    bar.advance(task)
        except BaseException:  # Ctrl-C, or a gradebook that can no longer be written
            grader.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(rows, key=lambda row: row.source)


def _keys() -> dict[str, LessonKey]:
    keys = {}
    for lesson in catalog.lessons():
        if lesson.notebook.exists():
            keys[lesson.id] = key_of(lesson)
    if not keys:
        raise CourseError(_NOT_BUILT)
    return keys


class _Grader:
    """Turn a submission into its row; called from many threads, each with its own worker process."""

    def __init__(
        self, keys: dict[str, LessonKey], graded: dict[str, str], backend: Backend, isolated: bool, seed: str
    ):
        self._keys, self._graded, self._backend = keys, graded, backend
        self._isolated, self._seed = isolated, seed
        self.stop = threading.Event()

    def __call__(self, submission: Submission) -> Row | None:
        """Return the row of a submission, or None if an earlier row stands."""
        begun = time.monotonic()
        found: dict[str, Any] = {"lesson": "", "sha256": "", "submitted": submission.submitted()}

        def row(status: Status, **values: Any) -> Row:
            seconds = time.monotonic() - begun
            return Row(
                submission.source, submission.student, status=status, seconds=seconds, **found | values
            )

        try:
            return self._grade(submission, found, row)
        except BatchStopped:
            return None
        except CourseError:  # this machine cannot grade at all: end the batch
            raise
        except Unreadable as reason:
            lost = _nothing(self._keys.get(found["lesson"]))
            return row(reason.status, notes=(reason.says,), results=lost)
        except Exception as error:  # a defect of the grader must cost one row, not the batch
            note = _BREAKS.format(error=clean(f"{type(error).__name__}: {error}")[:300])
            lost = _nothing(self._keys.get(found["lesson"]))
            return row(Status.GRADER_ERROR, notes=(note,), results=lost)

    def _grade(self, submission: Submission, found: dict[str, Any], row: Callable[..., Row]) -> Row | None:
        if self.stop.is_set():
            raise BatchStopped
        named = lesson_by_name(submission.stem)
        if named:
            found |= _facts(named, self._keys)
        data = submission.read()
        found["sha256"] = hashlib.sha256(data).hexdigest()
        if self._graded.get(submission.source) == found["sha256"]:
            return None
        cells = read_cells(data)
        lesson, told = lesson_of(cells, named)
        found |= _facts(lesson, self._keys)
        key = self._keys.get(lesson.id)
        if not key:
            return row(Status.GRADER_ERROR, notes=(_NO_KEY.format(id=lesson.id),))
        todo = plan(cells, key)
        found["written"] = Written.of((step.source, step.probes) for step in todo.steps)
        if not todo.probes:
            results = tuple(map(_untried, key.exercises))
            return row(Status.NOT_ATTEMPTED, notes=(*told, *todo.notes), results=results)
        seeds = seeds_for(todo, submission.source, self._seed)
        ran = self._backend.run(todo, key.setup, seeds, self.stop)
        status, results = _judged(key, todo.probes, seeds, ran)
        open_ = () if self._isolated else (_OPEN,)
        notes = (*told, *todo.notes, *ran.notes, *open_)
        return row(status, notes=notes, results=results, reached=tuple(ran.reached))


def _facts(lesson: catalog.Lesson, keys: dict[str, LessonKey]) -> dict[str, Any]:
    key = keys.get(lesson.id)
    if not key:
        return {"lesson": lesson.id}
    return {
        "lesson": lesson.id,
        "max_points": sum(e.points for e in key.exercises),
        "course": key.fingerprint,
    }


def _nothing(key: LessonKey | None) -> tuple[Result, ...]:
    """Return a result without a verdict for every exercise of a lesson."""
    return tuple(Result(e.id, LOST, e.points) for e in key.exercises) if key else ()


def _untried(exercise: Exercise) -> Result:
    """Return the result of an exercise that was not attempted."""
    said = Feedback.of(Verdict(exercise, Outcome.NOT_ATTEMPTED, 0))
    return Result(exercise.id, Outcome.NOT_ATTEMPTED.value, exercise.points, feedback=said)


def nothing_handed_in(student: str, lesson: catalog.Lesson) -> Row:
    """Return the row of a student who handed in nothing for a lesson, so that points can be set by hand."""
    of = exercises.of_lesson(lesson.id)
    return Row(
        source=f"{student}/{lesson.id}",
        student=student,
        lesson=lesson.id,
        sha256="",
        status=Status.NO_NOTEBOOK,
        max_points=sum(exercise.points for exercise in of),
        notes=(_BY_HAND,),
        results=tuple(map(_untried, of)),
    )


def _judged(
    key: LessonKey, probed: tuple[str, ...], seeds: dict[str, tuple[int, ...]], ran: Run
) -> tuple[Status, tuple[Result, ...]]:
    """Judge the records of a run; return its final status (a record may turn out to be forged) and the results."""
    if ran.status is Status.TAMPERED:
        return ran.status, _nothing(key)
    results = []
    for exercise in key.exercises:
        if exercise.id not in probed:
            results.append(_untried(exercise))
            continue
        seed, *_ = drawn = seeds[exercise.id]
        if exercise.id not in ran.records:
            results.append(Result(exercise.id, LOST, exercise.points, seed=seed))
            continue
        try:
            verdict = judge(exercise, ran.records[exercise.id], drawn)
            feedback = Feedback.of(verdict).map(clean)
        except ObservationError as error:
            note = _NO_OBSERVATION.format(id=exercise.id, error=clean(str(error))[:200])
            ran.ended(Status.TAMPERED, note)
            return ran.status, _nothing(key)
        except Exception as error:  # a defect of a judge costs its exercise, not the batch
            note = _JUDGE_BREAKS.format(id=exercise.id, error=clean(f"{type(error).__name__}: {error}")[:200])
            ran.ended(Status.GRADER_ERROR, note)
            results.append(Result(exercise.id, LOST, exercise.points, seed=seed))
            continue
        error = verdict.error
        results.append(
            Result(
                exercise.id,
                verdict.outcome.value,
                exercise.points,
                points=verdict.points,
                message_id=verdict.message_id,
                seed=seed,
                error=clean(f"{error['type']}: {error['message']}") if error else "",
                feedback=feedback,
            )
        )
    if ran.status is Status.GRADED and all(r.outcome == Outcome.NOT_ATTEMPTED.value for r in results):
        return Status.NOT_ATTEMPTED, tuple(results)
    return ran.status, tuple(results)
