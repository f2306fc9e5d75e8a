"""Right and wrong answers that people give, as real code: one file per exercise, or a folder where they are many.

Each answer is a function with the name that the learner defines, under the decorator `alternative` or `mistake`; or it
is `edited`, the reference answer with a few words replaced, where only those make the difference. A class has a unique
name here, because `inspect` finds classes by name, and is renamed when it is tried. The reference answers are in
course/, between BEGIN SOLUTION and END SOLUTION.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType

from hookedu import catalog
from hookedu.authoring import source
from hookedu.exercises import Exercise, find
from hookedu.exercises.feedback import ShownVerdict
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import dumps, loads
from hookedu.exercises.probing import observe


@dataclass(frozen=True)
class Edited:
    """An answer with some of its text replaced."""

    base: object | None  # an answer; None for the reference answer
    changes: tuple[tuple[str, str], ...]
    file: str


@dataclass(frozen=True)
class Answer:
    """One answer to one exercise.

    `mistake` is the id of the message that the answer must receive, None for a right answer. `line` is where it begins
    in its file. `points` are the points that a wrong answer keeps.
    """

    exercise: str
    mistake: str | None
    value: object
    line: int
    points: int = 0
    named: bool = True

    @property
    def known_as(self) -> str:
        """Name of the answer in tables: "late_binding:watch_many"."""
        name = "edited" if isinstance(self.value, Edited) else self.value.__qualname__
        return f"{self.mistake or 'right'}:{name}"

    @property
    def name(self) -> str:
        """Readable test id, such as "02.2-late_binding-l120" or "02.1-right-l38"."""
        return f"{self.exercise}-{self.mistake or 'right'}-l{self.line}"

    @property
    def place(self) -> str:
        """File and line of the answer, from the folder tests/ on."""
        file = self.value.file if isinstance(self.value, Edited) else _file_of(self.value)
        return f"{Path(file).relative_to(Path(__file__).parents[2])}:{self.line}"

    def fresh(self) -> object:
        """Return the answer as if its cell had just run, without state from an earlier call."""
        exercise, namespace = find(self.exercise), {}
        exec(_cell(self), namespace)
        return namespace[exercise.answer]

    def typed(self) -> str:
        """Return the cell as a learner would have typed it: imports, then the answer under the name asked for."""
        if isinstance(self.value, Edited):
            base = self.value.base
            # The reference answer uses what its lesson imports.
            origin = _file_of(base) if base else str(catalog.find(find(self.exercise).lesson).source)
            files, text = [self.value.file, origin], self._edited(self.value)
        else:
            files, text = [_file_of(self.value)], self._source(self.value)
        return f"{_imports(files, text)}\n\n{text}"

    def _edited(self, edited: Edited) -> str:
        text = self._source(edited.base) if edited.base else reference(self.exercise)
        for old, new in edited.changes:
            assert text.count(old) == 1, f"{self.name}: {old!r} stands {text.count(old)} times in:\n{text}"
            text = text.replace(old, new)
        return text

    def _source(self, value: object) -> str:
        """Return its source as a learner would type it into the cell, with the name that the exercise asks for."""
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
        node = ast.parse(text).body[0]
        ours = ("alternative", "mistake", "unnamed")
        kept = [
            d
            for d in node.decorator_list
            if not (isinstance(d, ast.Call) and getattr(d.func, "id", "") in ours)
        ]
        lines = text.splitlines()[node.lineno - 1 :]
        lines[0] = lines[0].replace(node.name, find(self.exercise).answer, 1)
        return "\n".join([*(f"@{ast.unparse(d)}" for d in kept), *lines])


_ANSWERS: list[Answer] = []


def alternative(exercise: str) -> Callable:
    """Return a decorator for a right answer that differs from the reference."""
    return _registers(exercise, None)


def mistake(exercise: str, message_id: str, points: int = 0) -> Callable:
    """Return a decorator for a wrong answer, with the message it must receive and the points it keeps."""
    return _registers(exercise, message_id, points)


def unnamed(exercise: str, criterion: str, points: int = 0) -> Callable:
    """Register a wrong answer that no mistake explains: it is refused by that criterion, and no cause is named."""
    return _registers(exercise, criterion, points, named=False)


def _registers(exercise: str, message_id: str | None, points: int = 0, named: bool = True) -> Callable:
    line = sys._getframe(2).f_lineno  # `inspect` would parse the whole file for each class
    return lambda value: _ANSWERS.append(Answer(exercise, message_id, value, line, points, named)) or value


def edited(
    exercise: str,
    message_id: str | None,
    *changes: tuple[str, str],
    of: object | None = None,
    points: int = 0,
    named: bool = True,
) -> None:
    """Add the reference answer, or the answer `of`, with replacements (old, new) in its text.

    Each old text must stand there exactly once. `message_id` is that of the mistake, None for a right answer; without
    `named` it is that of the criterion, because no mistake explains the answer.
    """
    frame = sys._getframe(1)
    value = Edited(of, changes, frame.f_code.co_filename)
    _ANSWERS.append(Answer(exercise, message_id, value, frame.f_lineno, points, named))


@cache
def reference(exercise_id: str) -> str:
    """Return the reference answer, with its docstring, without the markers around the solution."""
    exercise = find(exercise_id)
    cells = source.read(catalog.find(exercise.lesson))
    text = next(cell.text for cell in cells if cell.exercise == exercise_id)
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith("### "))


@cache
def answers() -> list[Answer]:
    """Return all of them, by exercise."""
    here = Path(__file__).parent
    for path in sorted(here.glob("lesson_*/**/*.py")):
        import_module(".".join(["tests.answers", *path.relative_to(here).with_suffix("").parts]))
    return sorted(_ANSWERS, key=lambda answer: answer.exercise)


def verdict_on(exercise: Exercise, answer: object, seed: int = 0) -> ShownVerdict:
    """Return the verdict on an answer as grading reaches it: probe, one line of JSON, judge."""
    seeds = _seeds(exercise.id, seed)
    return ShownVerdict.of(judge(exercise, loads(dumps(observe(exercise.probe, answer, seeds))), seeds))


@cache
def _seeds(exercise_id: str, seed: int) -> tuple[int, ...]:
    """Return the seeds of the cases. Cached: looking for cases that suit takes as long as a check in some exercises."""
    return tuple(find(exercise_id).seeds(seed))


@cache
def _cell(answer: Answer) -> CodeType:
    """Return the compiled cell of an answer. Cached: it runs once per seed, and compiling costs ten times the check."""
    return compile(answer.typed(), "<string>", "exec")


def _file_of(answer: object) -> str:
    return str(inspect.getsourcefile(inspect.unwrap(answer)))


def _imports(paths: list[str], text: str) -> str:
    """Return the imports of files whose names the answer uses, each name once: what a learner would have put on top."""
    used = {*re.findall(r"\w+", text)}
    lines = []
    for node in [node for path in paths for node in _all_imports(path)]:
        names = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in used]
        used -= {a.asname or a.name.partition(".")[0] for a in names}
        if names and "tests.answers" not in ast.unparse(node):
            whole = (
                ast.Import(names)
                if isinstance(node, ast.Import)
                else ast.ImportFrom(node.module, names, node.level)
            )
            lines.append(ast.unparse(whole))
    return "\n".join(lines)


@cache
def _all_imports(path: str) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
