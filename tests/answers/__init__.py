"""Right and wrong answers that people give, as real code: one file per exercise.

Each answer is a function with the name that the learner defines, under the decorator `alternative` or `mistake`. A
class has a unique name here, because `inspect` finds classes by name, and is renamed when it is tried. The reference
answers are in course/, between BEGIN SOLUTION and END SOLUTION.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType

from hookedu.exercises import find


@dataclass(frozen=True)
class Answer:
    """One answer to one exercise.

    `mistake` is the id of the message that the answer must receive, None for a right answer. `points` are the points
    that a wrong answer keeps.
    """

    exercise: str
    mistake: str | None
    value: object
    points: int = 0
    named: bool = True

    @property
    def name(self) -> str:
        """Readable test id, such as "02.2-late_binding-l120" or "02.1-right-l38"."""
        line = inspect.getsourcelines(inspect.unwrap(self.value))[1]
        return f"{self.exercise}-{self.mistake or 'right'}-l{line}"

    def fresh(self) -> object:
        """Return the answer as if its cell had just run, without state from an earlier call."""
        exercise, namespace = find(self.exercise), {}
        exec(_cell(self), namespace)
        return namespace[exercise.answer]

    def typed(self) -> str:
        """Return the cell as a learner would have typed it: imports, then the answer under the name asked for."""
        file = inspect.getsourcefile(inspect.unwrap(self.value))
        return _imports(file) + "\n\n" + self._source(find(self.exercise).answer)

    def _source(self, name: str) -> str:
        """Return its source as a learner would type it into the cell, defining `name`."""
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(self.value)))
        node = ast.parse(text).body[0]
        ours = ("alternative", "mistake", "unnamed")
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
    """Return a decorator for a right answer that differs from the reference."""
    return lambda value: _ANSWERS.append(Answer(exercise, None, value)) or value


def mistake(exercise: str, message_id: str, points: int = 0) -> Callable:
    """Return a decorator for a wrong answer, with the message it must receive and the points it keeps."""
    return lambda value: _ANSWERS.append(Answer(exercise, message_id, value, points)) or value


def unnamed(exercise: str, criterion: str, points: int = 0) -> Callable:
    """Register a wrong answer that no mistake explains: it is refused by that criterion, and no cause is named."""
    return lambda value: _ANSWERS.append(Answer(exercise, criterion, value, points, named=False)) or value


@cache
def answers() -> list[Answer]:
    """Return all of them, by exercise."""
    for path in sorted(Path(__file__).parent.glob("lesson_*/*.py")):
        import_module(f"tests.answers.{path.parent.name}.{path.stem}")
    return sorted(_ANSWERS, key=lambda answer: answer.exercise)


@cache
def _cell(answer: Answer) -> CodeType:
    """Return the compiled cell of an answer. Cached: it runs once per seed, and compiling costs ten times the check."""
    return compile(answer.typed(), "<string>", "exec")


@cache
def _imports(path: str) -> str:
    """Return the import lines of a file of answers: what a learner would have put on top of the cell."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    lines = [ast.unparse(n) for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return "\n".join(line for line in lines if "tests.answers" not in line)
