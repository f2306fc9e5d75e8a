"""Repeat one verdict for the instructor: run the same cells with the same seed, and show the basis of the points.

Unlike the feedback to students, this shows every criterion and every observation. Nothing is written.
"""

import contextlib
import hashlib
import threading
from pathlib import Path

from rich.console import Console
from rich.text import Text as Line

from hookedu import catalog, exercises
from hookedu.catalog import CourseError
from hookedu.exercises.exercise import Verdict
from hookedu.exercises.feedback import LOOKS
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import ObservationError, decode, show
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Grade, address
from hookedu.grading.cleaning import clean
from hookedu.grading.collect import collect
from hookedu.grading.limits import Limits
from hookedu.grading.matching import key_of, plan
from hookedu.grading.out.terminal import LOOKS as STATUSES
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import Result, Unreadable
from hookedu.grading.run.runner import run
from hookedu.grading.run.sandbox import Sandbox
from hookedu.language import Text, in_both

_NO_RUN = Text(
    zh="`{who}` 没有可以重复的运行：{status}。",
    en="There is no run of `{who}` to repeat: {status}.",
)
_GONE = Text(
    zh="`{folder}` 里没有评过分的文件 `{source}`。请给出评分时的那个文件夹或 zip。",
    en="`{folder}` does not hold `{source}`, which was graded. Give the folder or zip that it was graded from.",
)
_CHANGED = Text(
    zh="`{source}` 在评分之后改过了。先重新运行 `hookedu grade`，再解释。",
    en="`{source}` has changed since it was graded. Run `hookedu grade` again first, then explain.",
)
_OTHER_CASES = Text(
    zh="{exercise} 是用课程的另一个版本评的，那时的输入和现在的不同，结论无法重现。请重新评分。",
    en="{exercise} was graded with another version of the course, whose input was not that of today: the verdict cannot "
    "be repeated. Grade again.",
)
_ENDED = Text(
    zh="这一次运行没有走到 {exercise}：{status}。",
    en="This run did not get to {exercise}: {status}.",
)
_FORGED = Text(zh="记录不可信：{error}", en="a record not to be trusted: {error}")
_SAME = Text(zh="和成绩册里一样。", en="The same as in the gradebook.")
_DIFFERENT = Text(
    zh="和成绩册里不一样：那里是 {outcome}，{points} 分。代码可能取决于时间或自己的随机数，课程也可能改过（`--again` 会重新评）。",
    en="Not the same as in the gradebook: there it is {outcome}, {points} points. The code may depend on time or on "
    "randomness of its own, or the course has changed (`--again` grades anew).",
)
_LABELS = {
    "source": Text(zh="文件", en="file"),
    "seed": Text(zh="种子", en="seed"),
    "verdict": Text(zh="结论", en="verdict"),
    "mistake": Text(zh="识别出的错误", en="recognised mistake"),
    "given": Text(zh="输入", en="given"),
    "expected": Text(zh="应当是", en="expected"),
    "got": Text(zh="得到的是", en="got"),
    "observations": Text(zh="观察到的", en="observed"),
}


def explain(
    who: str,
    folder: Path,
    out: Path,
    limits: Limits,
    *,
    isolated: bool = True,
    console: Console | None = None,
) -> Verdict:
    """Repeat the verdict on "STUDENT/EXERCISE" and print it with all criteria and observations.

    The attempt that counts is repeated, with the seeds in the gradebook.

    Parameters
    ----------
    who : str
        "STUDENT/EXERCISE", such as "ann/02.1".
    folder : Path
        The folder or zip that was graded.
    out : Path
        The folder of the gradebook.
    limits : Limits
        Resource limits of the run.
    isolated : bool
        Run the submission in a sandbox.
    console : Console, optional
        Where the verdict is printed; the standard output by default.

    Returns
    -------
    Verdict
        The repeated verdict.

    Raises
    ------
    CourseError
        If the verdict cannot be repeated: the address or the gradebook is wrong, the exercise was not run, the
        notebook is missing or has changed, or this run ended before the exercise or sent forged records.
    """
    student, exercise_id = address(who)
    lesson = exercise_id.split(".")[0]
    with contextlib.closing(Gradebook(out, create=False)) as book:
        book.require(student, lesson)
        grade = next(g for g in book.grades(student) if g.row.lesson == lesson and g.counts)
    results = {result.exercise: result for result in grade.row.results}
    result = results.get(exercise_id)
    if result is None or result.seed is None:
        raise CourseError(_NO_RUN.format(who=who, status=STATUSES[grade.row.status][1]))
    exercise = exercises.find(exercise_id)
    if exercise.seeds(result.seed)[0] != result.seed:
        raise CourseError(_OTHER_CASES.format(exercise=exercise_id))
    key = key_of(catalog.find(lesson))
    todo = plan(read_cells(_bytes(folder, out, grade)), key)
    recorded = {name: each.seed for name, each in results.items() if each.seed is not None}
    seeds = {name: exercises.find(name).seeds(recorded.get(name, 0)) for name in todo.probes}
    with contextlib.closing(Sandbox(isolated, limits.startup)) as sandbox:
        ran = run(todo, key.setup, seeds, limits, sandbox, threading.Event())
    if exercise_id not in ran.records:
        status = STATUSES[ran.status][1]
        raise CourseError(_ENDED.format(exercise=exercise_id, status=status), *ran.notes)
    record = ran.records[exercise_id]
    try:
        verdict = judge(exercise, record, seeds[exercise_id])
        for criterion in verdict.criteria:
            _ = criterion.given, criterion.expected, criterion.got  # a forged record may lack what they show
        observed = decode(record.get("observations")) if record.get("status") == "observed" else None
    except ObservationError as error:
        raise CourseError(_FORGED.format(error=clean(str(error))[:300])) from None
    shown = observed[verdict.failed.turn if verdict.failed else 0] if isinstance(observed, list) else {}
    console = console or Console()
    _print(console, grade, result, verdict, shown)
    for note in ran.notes:  # the run may also have ended later
        console.print(Line(in_both(note)), soft_wrap=True)
    return verdict


def _bytes(folder: Path, out: Path, grade: Grade) -> bytes:
    row = grade.row
    found = [s for s in collect(folder, out).submissions if s.source == row.source]
    if not found:
        raise CourseError(_GONE.format(folder=folder, source=row.source))
    try:
        data = found[0].read()
    except Unreadable as reason:
        raise CourseError(reason.says) from None
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise CourseError(_CHANGED.format(source=row.source))
    return data


def _print(console: Console, grade: Grade, result: Result, verdict: Verdict, observed: dict) -> None:
    def say(label: str, value: str | Text, indent: str = "") -> None:
        value = in_both(value) if isinstance(value, Text) else value
        lines = (clean(line) for line in value.split("\n"))
        # Never rich markup: a learner's value may look like it.
        console.print(Line(f"{indent}{label}: " + "\n".join(lines)), soft_wrap=True)

    sign, _, outcome = LOOKS[verdict.outcome]
    say(in_both(_LABELS["source"]), grade.row.source)
    say(in_both(_LABELS["seed"]), str(result.seed))
    say(in_both(_LABELS["verdict"]), f"{sign} {in_both(outcome)}, {verdict.points}/{verdict.exercise.points}")
    same = (result.outcome, result.points) == (verdict.outcome.value, verdict.points)
    known = {outcome.value: looks[2] for outcome, looks in LOOKS.items()}
    recorded = known.get(result.outcome, result.outcome)  # LOST, or an outcome of another version
    differs = _DIFFERENT.format(outcome=recorded, points=result.points)
    console.print(Line(in_both(_SAME if same else differs)), soft_wrap=True)
    for criterion in verdict.criteria:
        say(f"{'✓' if criterion.passed else '✗'} {criterion.id}", f"{criterion.points}")
        # `got` of a passed criterion is its text for a failure and need not be true of this answer.
        for name in ("given", "expected") if criterion.passed else ("given", "expected", "got"):
            if value := getattr(criterion, name):
                say(in_both(_LABELS[name]), value, indent="    ")
    if verdict.mistake:
        say(in_both(_LABELS["mistake"]), f"{verdict.mistake.id}: {in_both(verdict.mistake.says)}")
    if observed:
        console.print(Line(in_both(_LABELS["observations"]) + ":"))
        for name, value in observed.items():
            say(clean(str(name)), show(value), indent="    ")
    if verdict.error or verdict.wrong_type:
        console.print(Line("\n".join(map(clean, repr(verdict).split("\n")))), soft_wrap=True)
