"""What a class did as a whole, gathered from the grades that count, for the report on it."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

from hookedu import catalog, exercises
from hookedu.exercises.exercise import Outcome
from hookedu.exercises.feedback import Feedback
from hookedu.grading.book.grades import Grade, Mark, tidy
from hookedu.grading.matching import read_cells
from hookedu.grading.rows import LOST, Status
from hookedu.language import Text

_UNNAMED = Text(
    zh="检查 `{id}` 没有通过。例如：", en="The check `{id}` failed. For example:"
)  # a criterion behind which no mistake is recognised
_RAISED = Text(zh="运行时出错：`{error}`。例如：", en="It raised `{error}`. For example:")
_NOTHING = Feedback()
_WRONG = {Outcome.PARTLY.value, Outcome.INCORRECT.value, Outcome.RAISED.value}


@dataclass
class Misunderstood:
    """One mistake, and who made it. tried: how many tried that exercise. example: shown where `says` is general."""

    exercise: str
    id: str
    says: Text
    example: Feedback
    section: Text
    lesson: str  # the notebook's name
    students: list[str] = field(default_factory=list)
    tried: int = 0


@dataclass
class ExerciseView:
    """One exercise over the class; outcomes: students by outcome."""

    id: str
    max_points: int
    outcomes: Counter = field(default_factory=Counter)
    points: float = 0.0

    @property
    def count(self) -> int:
        """How many handed in that lesson."""
        return self.outcomes.total()

    @property
    def solved(self) -> int:
        """How many solved it."""
        return self.outcomes[Outcome.CORRECT.value]

    @property
    def mean(self) -> float:
        """Mean points, what was set by hand included."""
        return tidy(self.points / self.count)


class Overview:
    """The class, one grade at a time: `add` them all, then read."""

    def __init__(self) -> None:
        self.grades: list[Grade] = []
        self._exercises: dict[str, ExerciseView] = {}
        self._mistakes: dict[tuple[str, str], Misunderstood] = {}

    def add(self, grade: Grade) -> None:
        """Take in one grade that counts; its feedback is not kept."""
        brief = [replace(mark, result=replace(mark.result, feedback=_NOTHING)) for mark in grade.marks]
        self.grades.append(replace(grade, marks=tuple(brief)))
        for mark in grade.marks:
            result = mark.result
            view = self._exercises.setdefault(
                result.exercise, ExerciseView(result.exercise, result.max_points)
            )
            view.outcomes[result.outcome] += 1
            view.points += mark.points
            if result.outcome in _WRONG:
                self._count(mark, grade.row.student)

    def _count(self, mark: Mark, student: str) -> None:
        result = mark.result
        exercise = exercises.find(result.exercise)
        kind = result.message_id
        known = exercise.mistake(kind)
        if kind == Outcome.RAISED.value:  # errors that no mistake explains are told apart by their type
            kind = result.error.partition(":")[0]
        if (exercise.id, kind) not in self._mistakes:
            lesson = catalog.find(exercise.lesson)
            if known:
                says, example = known.says, _NOTHING
            else:
                general = _RAISED if result.outcome == Outcome.RAISED.value else _UNNAMED
                says = general.format(id=kind, error=kind)
                example = Feedback(result.feedback.table, result.feedback.traceback)
            section = sections(lesson.id).get(exercise.id, exercise.title)
            self._mistakes[exercise.id, kind] = Misunderstood(
                exercise.id, kind, says, example, section, lesson.file
            )
        self._mistakes[exercise.id, kind].students.append(student)

    @property
    def exercises(self) -> list[ExerciseView]:
        """Every exercise, in order."""
        return [self._exercises[name] for name in sorted(self._exercises)]

    @property
    def mistakes(self) -> list[Misunderstood]:
        """What was misunderstood, the most frequent first."""
        for mistake in self._mistakes.values():
            outcomes = self._exercises[mistake.exercise].outcomes
            mistake.tried = outcomes.total() - outcomes[Outcome.NOT_ATTEMPTED.value] - outcomes[LOST]
        return sorted(self._mistakes.values(), key=lambda m: (-len(m.students), m.exercise, m.id))

    @property
    def statuses(self) -> list[tuple[Status, int]]:
        """How many ended how."""
        counts = Counter(grade.row.status for grade in self.grades)
        return [(status, counts[status]) for status in Status if counts[status]]

    @property
    def students(self) -> int:
        """How many there are."""
        return len({grade.row.student for grade in self.grades})

    @property
    def submissions(self) -> int:
        """How many grades count."""
        return len(self.grades)

    @property
    def mean(self) -> str:
        """The mean of points reached of points possible, "73 %"."""
        possible = sum(grade.row.max_points for grade in self.grades)
        return f"{sum(grade.points for grade in self.grades) / possible:.0%}" if possible else "–"

    @property
    def attention(self) -> list[Grade]:
        """What somebody has to look at."""
        return [grade for grade in self.grades if not grade.row.status.fine]


@cache
def sections(lesson_id: str) -> dict[str, Text]:
    """For each exercise of a lesson the heading of the section that it closes: "2.8 许多钩子 · Many hooks"."""
    found, heading = {}, None
    slugs = {exercise.slug: exercise.id for exercise in exercises.of_lesson(lesson_id)}
    for cell in read_cells(catalog.find(lesson_id).notebook.read_bytes()):
        if cell.kind == "markdown" and (match := re.search(r"(?m)^## ([\d.]+) (.+) · (.+)$", cell.source)):
            number, zh, en = match.groups()
            heading = Text(zh=f"{number} {zh}", en=f"{number} {en}")
        if heading and cell.grade_id in slugs:
            found[slugs[cell.grade_id]] = heading
    return found
