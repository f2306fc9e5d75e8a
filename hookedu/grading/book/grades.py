"""Compute the points that a student gets for a lesson from attempts, adjustments and rules.

The results are not stored, so a changed rule or adjustment never requires a new run.

    adjust    points set by hand with a reason: those of one exercise, which replace the judge's whichever attempt
              counts; or those of a whole lesson, which neither exercises nor lateness change any more
    late      a deduction for every day (or hour) begun after the due date, never below 0 points: as in Canvas, a
              percentage of the points possible, counted in begun days
    attempt   `last`, as in nbgrader, Canvas and Gradescope, or `best`. The last attempt is the newest of the files that
              exist now; an earlier content of the same path is never the last attempt.
"""

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hookedu import catalog, exercises
from hookedu.catalog import CourseError
from hookedu.grading.cleaning import one_form
from hookedu.grading.rows import Result, Row
from hookedu.language import Text

ATTEMPTS = ("last", "best")
_PERIODS = {"day": datetime.timedelta(days=1), "hour": datetime.timedelta(hours=1)}
_NONE = "none"

_BAD_ATTEMPT = Text(
    zh="`--attempt` 只能是 `last`（最后一次）或 `best`（最好一次），不能是 `{value}`。",
    en="`--attempt` is `last` or `best`, not `{value}`.",
)
_BAD_DUE = Text(
    zh="看不懂截止时间 `{value}`：写成 `2026-12-01`（那天结束时）或 `2026-12-01T18:00`（本机时区），或只给一课："
    "`02=2026-12-01`；`none` 取消。",
    en="`{value}` is no due date: write `2026-12-01` (the end of that day) or `2026-12-01T18:00` (in this machine's time "
    "zone), or for one lesson `02=2026-12-01`; `none` takes it back.",
)
_BAD_LATE = Text(
    zh="看不懂迟交规则 `{value}`：写成 `10%/day` 或 `2%/hour`，或只给一课：`02=10%/day`；`none` 取消。",
    en="`{value}` is no rule for late work: write `10%/day` or `2%/hour`, or for one lesson `02=10%/day`; `none` "
    "takes it back.",
)
_LATE_WITHOUT_DUE = Text(
    zh="迟交规则还缺截止时间：再加上 `--due 2026-12-01T23:59`。",
    en="A rule for late work needs a due date: add `--due 2026-12-01T23:59`.",
)
_BAD_ADDRESS = Text(
    zh="`{value}` 应当写成 `学生/练习`，例如 `ann/02.1`。",
    en="`{value}` should read `STUDENT/EXERCISE`, such as `ann/02.1`.",
)


@dataclass(frozen=True)
class Late:
    """The deduction for late work: `percent` of the points possible for each "day" or "hour" begun (`per`)."""

    percent: float
    per: str

    def off(self, lateness: datetime.timedelta, possible: float) -> float:
        """Return the points to deduct."""
        return self.percent / 100 * possible * math.ceil(lateness / _PERIODS[self.per])


def _late(value: str) -> Late:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)%/(day|hour)", value)
    if not match or float(match[1]) > 100:
        raise CourseError(_BAD_LATE.format(value=value))
    return Late(float(match[1]), match[2])


def _due(value: str) -> datetime.datetime:
    """Parse a due date; a day alone means its last second, and a minute its last.

    Where a change of the clocks repeats or skips the time, the later meaning counts.
    """
    try:
        due = datetime.datetime.fromisoformat(value)
        if not re.search(r"\d[T ]\d", value):
            due = due.replace(hour=23, minute=59, second=59)
        elif re.fullmatch(r"[^T ]+[T ]\d\d(?::?\d\d)?(?:Z|[+-].*)?", value):
            due = due.replace(second=59)
        # A naive time is local time.
        return max(due.replace(fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    except (ValueError, OverflowError):
        raise CourseError(_BAD_DUE.format(value=value)) from None


def _attempt(value: str) -> str:
    if value not in ATTEMPTS:
        raise CourseError(_BAD_ATTEMPT.format(value=value))
    return value


_READERS = {"attempt": _attempt, "due": _due, "late": _late}


class Rules:
    """The rules of one gradebook.

    Parameters
    ----------
    texts : mapping of (str, str) to str
        The value of each rule as text, by rule and lesson; lesson "" stands for every lesson without its own rule.

    Raises
    ------
    CourseError
        If a text is not a valid rule.
    """

    def __init__(self, texts: Mapping[tuple[str, str], str]):
        self.texts = dict(texts)
        self._read = {key: _READERS[key[0]](text) for key, text in self.texts.items() if text != _NONE}

    @classmethod
    def of_options(cls, attempt: str | None, due: Iterable[str], late: Iterable[str]) -> "Rules":
        """Return the rules given on the command line.

        Parameters
        ----------
        attempt : str or None
            "last" or "best".
        due : iterable of str
            "2026-12-01T23:59", or "02=2026-12-01T23:59" for one lesson; "none" withdraws a date.
        late : iterable of str
            "10%/day", or "02=10%/day" for one lesson; "none" withdraws a rule.

        Raises
        ------
        CourseError
            If a text is not a valid rule, or there is no such lesson.
        """
        texts = {("attempt", ""): attempt} if attempt is not None else {}
        for rule, options in (("due", due), ("late", late)):
            for option in options:
                lesson, _, value = option.rpartition("=")
                if rule == "due" and value != _NONE:
                    value = _due(value).isoformat()  # in UTC, so that it means the same on every machine
                texts[rule, catalog.find(lesson).id if lesson else ""] = value
        return cls(texts)

    def changed(self, by: "Rules") -> "Rules":
        """Return these rules updated by newer ones; raise CourseError for late work without any due date."""
        texts = {key: text for key, text in (self.texts | by.texts).items() if text != _NONE}
        kinds = {rule for rule, _ in texts}
        if "late" in kinds and "due" not in kinds:
            raise CourseError(_LATE_WITHOUT_DUE)
        return Rules(texts)

    def of(self, rule: str, lesson: str):
        """Return a lesson's rule: "attempt" (a str), "due" (a UTC datetime or None) or "late" (a Late or None)."""
        default = ATTEMPTS[0] if rule == "attempt" else None
        return self._read.get((rule, lesson), self._read.get((rule, ""), default))


@dataclass(frozen=True)
class Adjustment:
    """Points set by hand, with the reason and the time of the change."""

    points: float
    reason: str
    made_at: str


@dataclass(frozen=True)
class Mark:
    """The result of one exercise and, if its points were set by hand, the adjustment."""

    result: Result
    adjustment: Adjustment | None = None

    @property
    def points(self) -> float:
        """The points set by hand, else the judge's."""
        return self.adjustment.points if self.adjustment else self.result.points


@dataclass(frozen=True)
class Grade:
    """One attempt at a lesson with everything that determines its points.

    Attributes
    ----------
    row : Row
        The attempt as graded.
    marks : tuple of Mark
        Its exercises.
    due : datetime or None
        The due date.
    lateness : timedelta
        Time between `due` and the submission; zero if it was in time.
    penalty : float
        Points deducted for lateness.
    attempts : int
        Number of the student's attempts at this lesson.
    counts : bool
        Whether this is the attempt that counts.
    total : Adjustment or None
        The points of the whole lesson, if they were set by hand.
    """

    row: Row
    marks: tuple[Mark, ...]
    due: datetime.datetime | None = None
    lateness: datetime.timedelta = datetime.timedelta()
    penalty: float = 0
    attempts: int = 1
    counts: bool = True
    total: Adjustment | None = None

    @property
    def points(self) -> float:
        """The points that the student gets."""
        if self.total:
            return tidy(self.total.points)
        return tidy(sum(mark.points for mark in self.marks) - self.penalty)

    @property
    def adjusted(self) -> tuple[Mark, ...]:
        """The exercises whose points were set by hand."""
        return tuple(mark for mark in self.marks if mark.adjustment)


def weigh(rows: list[Row], adjustments: Mapping[str, Adjustment], rules: Rules) -> list[Grade]:
    """Return the grades of all attempts of one student at one lesson.

    Parameters
    ----------
    rows : list of Row
        The attempts; at least one.
    adjustments : mapping of str to Adjustment
        That student's adjustments, by exercise, or by lesson where the points of a whole lesson were set.
    rules : Rules
        The rules of the gradebook.
    """
    grades = [_grade(row, adjustments, rules) for row in rows]
    newest: dict[str, Grade] = {}
    for grade in grades:
        if grade.row.attempt >= newest.get(grade.row.source, grade).row.attempt:
            newest[grade.row.source] = grade
    if rules.of("attempt", rows[0].lesson) == "best":
        chosen = max(grades, key=lambda grade: (grade.points, _when(grade)))
    else:
        chosen = max(newest.values(), key=_when)
    return [replace(grade, attempts=len(grades), counts=grade is chosen) for grade in grades]


def _when(grade: Grade) -> tuple[float, float, str, int]:
    """Return what orders grades in time; of two at the same time, the better comes last."""
    row = grade.row
    return (row.submitted.timestamp() if row.submitted else 0.0, grade.points, row.source, row.attempt)


def _grade(row: Row, adjustments: Mapping[str, Adjustment], rules: Rules) -> Grade:
    marks = tuple(Mark(result, adjustments.get(result.exercise)) for result in row.results)
    due, late = rules.of("due", row.lesson), rules.of("late", row.lesson)
    grade = Grade(row, marks, due, total=adjustments.get(row.lesson))
    # A due date is a whole second, and that second is still in time; so is each whole day after it.
    submitted = row.submitted and row.submitted.replace(microsecond=0)
    if not due or not submitted or submitted <= due:
        return grade
    lateness = submitted - due
    off = min(late.off(lateness, row.max_points), grade.points) if late and not grade.total else 0
    return replace(grade, lateness=lateness, penalty=tidy(off))


def tidy(points: float) -> float:
    """Return points rounded to two decimals, as an int if they are whole."""
    points = round(points, 2)
    return int(points) if points == int(points) else points


def address(text: str, lesson_too: bool = False) -> tuple[str, str]:
    """Split "ann/02.1" into student and exercise; with `lesson_too` also "ann/02" into student and lesson.

    Raises
    ------
    CourseError
        If the text has neither form, or there is no such exercise or lesson.
    """
    student, _, what = one_form(text).rpartition("/")
    if not student:
        raise CourseError(_BAD_ADDRESS.format(value=text))
    if lesson_too and re.fullmatch(r"\d\d", what):
        return student, catalog.find(what).id
    try:
        return student, exercises.find(what).id
    except exercises.UnknownExercise as unknown:
        raise CourseError(unknown.says) from None
