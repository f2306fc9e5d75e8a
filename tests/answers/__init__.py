"""Answers that people give, right and wrong, as real code: one module a lesson.

Each is a function under the decorator that says what it is, named as the learner names it; a class needs a
name of its own here (inspect finds classes by name) and gets the learner's when it is tried. The reference answers are not here:
they stand in course/, between BEGIN SOLUTION and END SOLUTION.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from hookedu.exercises import find, lessons


@dataclass(frozen=True)
class Answer:
    """One answer to one exercise. `mistake` is the message id it must get, None for a right answer."""

    exercise: str
    mistake: str | None
    value: object
    points: int = 0

    @property
    def name(self) -> str:
        """A readable test id: "02.1-late_binding" or "02.1-right-l38"."""
        line = inspect.getsourcelines(inspect.unwrap(self.value))[1]
        return f"{self.exercise}-{self.mistake or 'right'}-l{line}"

    def fresh(self) -> object:
        """The answer as if its cell had just run: with no state from an earlier call."""
        exercise, namespace = find(self.exercise), {}
        exec(imports(exercise.lesson) + "\n" + self.source(exercise.answer), namespace)
        return namespace[exercise.answer]

    def source(self, name: str) -> str:
        """Its source as a learner would have typed it into the cell, defining `name`."""
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(self.value)))
        node = ast.parse(text).body[0]
        ours = ("alternative", "mistake")
        kept = [
            d
            for d in node.decorator_list
            if not (isinstance(d, ast.Call) and getattr(d.func, "id", "") in ours)
        ]
        lines = text.splitlines()[node.lineno - 1 :]
        lines[0] = lines[0].replace(node.name, name, 1)
        return "\n".join([*(f"@{ast.unparse(d)}" for d in kept), *lines])


_ANSWERS: list[Answer] = []


def alternative(exercise: str) -> Callable:
    """A right answer that differs from the reference."""
    return lambda value: _ANSWERS.append(Answer(exercise, None, value)) or value


def mistake(exercise: str, message_id: str, points: int = 0) -> Callable:
    """A wrong answer, the message it must get, and the points it may keep."""
    return lambda value: _ANSWERS.append(Answer(exercise, message_id, value, points)) or value


def answers() -> list[Answer]:
    """All of them, of every lesson that has exercises."""
    for lesson in lessons():
        import_module(f"tests.answers.lesson_{lesson}")
    return _ANSWERS


@cache  # parsing a lesson's answers for each of them took most of the time of their tests
def imports(lesson: str) -> str:
    """The import lines of a lesson's answers: what a learner would have put on top of the cell."""
    tree = ast.parse((Path(__file__).parent / f"lesson_{lesson}.py").read_text(encoding="utf-8"))
    lines = [ast.unparse(n) for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return "\n".join(line for line in lines if "tests.answers" not in line)
