"""Exercises of the course.

Each consists of a probe (`probes`), which runs beside the learner's code, a table of checks (`checks`), which decides,
and words (course/NN_name.yml). The exercises of a lesson are imported only when one of them is requested.
"""

import difflib
import pkgutil
import re
import unicodedata
from functools import cache
from importlib import import_module
from pathlib import Path

from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise, Mistake, Outcome
from hookedu.language import Text

__all__ = [
    "Check",
    "Exercise",
    "Gives",
    "Mistake",
    "Outcome",
    "Say",
    "UnknownExercise",
    "find",
    "lessons",
    "of_lesson",
]

_CHECKS = Path(__file__).with_name("checks")


class UnknownExercise(KeyError):
    """Raised for an id that no exercise has; the message `says` names the nearest ids."""

    def __init__(self, exercise_id: object):
        ids = [e.id for lesson in lessons() for e in of_lesson(lesson)]
        if not ids:
            self.says = Text(
                zh="这里没有练习的检查：提交的作业要在别处评分。",
                en="There are no checks here: a submission is graded elsewhere.",
            )
            return super().__init__(str(self.says))
        wanted = str(exercise_id).strip()
        if not re.match(r"\d", wanted):  # left out, or the function in its place
            self.says = Text(
                zh='要写练习的编号，加上引号：`"02.1"` 是第 02 课的第 1 题。',
                en='Give the number of the exercise, in quotes: `"02.1"` is the first of lesson 02.',
            )
            return super().__init__(str(self.says))
        near = ", ".join(f"`{i}`" for i in _near(wanted, ids))
        self.says = Text(
            zh="没有编号为 `{id}` 的练习。最接近的是：{near}。",
            en="There is no exercise `{id}`. The nearest ids: {near}.",
        ).format(id=wanted[:60], near=near)
        super().__init__(str(self.says))

    def __str__(self) -> str:
        return str(self.says)


def _near(wanted: str, ids: list[str]) -> list[str]:
    """Return the ids that "2.1", "02.9" or "2" may mean: that one, else those of the lesson, else similar ones."""
    lesson, _, number = wanted.partition(".")
    padded = f"{lesson.zfill(2)}.{number}"
    of_the_lesson = [i for i in ids if i.startswith(f"{lesson.zfill(2)}.")]
    return [padded] if padded in ids else of_the_lesson or difflib.get_close_matches(padded, ids, cutoff=0.0)


@cache
def lessons() -> tuple[str, ...]:
    """Return the sorted numbers of the lessons that have exercises: ("00", "01", ...)."""
    return tuple(sorted(p.name.removeprefix("lesson_") for p in _CHECKS.glob("lesson_*")))


@cache
def of_lesson(lesson: str) -> tuple[Exercise, ...]:
    """Return the exercises of a lesson such as "02", in order; () if it has none.

    Raises WordsError if the words of an exercise and its code do not match.
    """
    if lesson not in lessons():
        return ()
    package = f"hookedu.exercises.checks.lesson_{lesson}"
    names = [module.name for module in pkgutil.iter_modules([str(_CHECKS / f"lesson_{lesson}")])]
    modules = [import_module(f"{package}.{name}") for name in names]
    return tuple(sorted((m.EXERCISE for m in modules if hasattr(m, "EXERCISE")), key=lambda e: e.id))


def find(exercise_id: str) -> Exercise:
    """Return the exercise with this id, such as "02.1"; raise UnknownExercise if there is none."""
    # Chinese input methods type full-width digits.
    plain = unicodedata.normalize("NFKC", exercise_id).strip() if isinstance(exercise_id, str) else ""
    if re.fullmatch(r"\d\d\.\d+", plain):
        for exercise in of_lesson(plain.split(".")[0]):
            if exercise.id == plain:
                return exercise
    raise UnknownExercise(exercise_id)
