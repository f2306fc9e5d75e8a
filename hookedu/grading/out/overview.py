"""Statistics of a class for the class report, computed from the grades that count."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

from hookedu import catalog, exercises
from hookedu.exercises.exercise import Outcome
from hookedu.exercises.feedback import Feedback
from hookedu.grading.book.grades import Grade, Mark, tidy
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import LOST, Status
from hookedu.language import Text

# For a failed criterion for which the judge recognises no known mistake.
_UNNAMED = Text(zh="检查 `{id}` 没有通过。例如：", en="The check `{id}` failed. For example:")
_RAISED = Text(zh="运行时出错：`{error}`。例如：", en="It raised `{error}`. For example:")
_NOTHING = Feedback()
_WRONG = {Outcome.PARTLY.value, Outcome.INCORRECT.value, Outcome.RAISED.value}


@dataclass
class Misunderstood:
    """One mistake and the students who made it."""

    exercise: str
    id: str
    says: Text
    example: Feedback  # empty if `says` is specific enough
    section: Text  # heading of the section to look at
    lesson: str  # the notebook's name
    students: list[str] = field(default_factory=list)
    tried: int = 0  # number of students who tried the exercise


@dataclass
class ExerciseView:
    """Statistics of one exercise over the class."""

    id: str
    max_points: int
    outcomes: Counter = field(default_factory=Counter)  # number of students by outcome
    points: float = 0.0  # sum over the students

    @property
    def count(self) -> int:
        """Number of students who submitted the lesson."""
        return self.outcomes.total()

    @property
    def solved(self) -> int:
        """Number of students who solved the exercise."""
        return self.outcomes[Outcome.CORRECT.value]

    @property
    def mean(self) -> float:
        """Mean points, including those set by hand."""
        return tidy(self.points / self.count)


class Overview:
    """Statistics of the class: `add` every grade that counts, then read the properties."""

    def __init__(self) -> None:
        self.grades: list[Grade] = []
        self._exercises: dict[str, ExerciseView] = {}
        self._mistakes: dict[tuple[str, str], Misunderstood] = {}

    def add(self, grade: Grade) -> None:
        """Add one grade that counts, without keeping its feedback."""
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
        if kind == Outcome.RAISED.value:  # errors that no mistake explains are distinguished by their type
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
        """All exercises, in order."""
        return [self._exercises[name] for name in sorted(self._exercises)]

    @property
    def mistakes(self) -> list[Misunderstood]:
        """All mistakes, the most frequent first."""
        for mistake in self._mistakes.values():
            outcomes = self._exercises[mistake.exercise].outcomes
            mistake.tried = outcomes.total() - outcomes[Outcome.NOT_ATTEMPTED.value] - outcomes[LOST]
        return sorted(self._mistakes.values(), key=lambda m: (-len(m.students), m.exercise, m.id))

    @property
    def statuses(self) -> list[tuple[Status, int]]:
        """Number of submissions by status, for the statuses that occur."""
        counts = Counter(grade.row.status for grade in self.grades)
        return [(status, counts[status]) for status in Status if counts[status]]

    @property
    def students(self) -> int:
        """Number of students."""
        return len({grade.row.student for grade in self.grades})

    @property
    def submissions(self) -> int:
        """Number of grades that count."""
        return len(self.grades)

    @property
    def mean(self) -> str:
        """Points reached as a share of all points possible, such as "73%"."""
        possible = sum(grade.row.max_points for grade in self.grades)
        return f"{sum(grade.points for grade in self.grades) / possible:.0%}" if possible else "–"

    @property
    def attention(self) -> list[Grade]:
        """Grades that somebody has to look at, first those that reached behind the scenes."""
        return sorted((g for g in self.grades if g.row.needs_a_look), key=lambda g: not g.row.reached)


@cache
def sections(lesson_id: str) -> dict[str, Text]:
    """Return the heading of the section that each exercise of a lesson ends, such as "2.8 许多钩子 · Many hooks"."""
    found, heading = {}, None
    slugs = {exercise.slug: exercise.id for exercise in exercises.of_lesson(lesson_id)}
    for cell in read_cells(catalog.find(lesson_id).notebook.read_bytes()):
        if cell.kind == "markdown" and (match := re.search(r"(?m)^## ([\d.]+) (.+) · (.+)$", cell.source)):
            number, zh, en = match.groups()
            heading = Text(zh=f"{number} {zh}", en=f"{number} {en}")
        if heading and cell.grade_id in slugs:
            found[slugs[cell.grade_id]] = heading
    return found
