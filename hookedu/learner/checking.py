"""The learner's face of the exercises: check, hint, solution."""

import contextlib
import datetime
import json
import os
import random
import sys
from typing import Any

from hookedu import catalog, exercises, storage
from hookedu.exercises.exercise import Exercise, Outcome
from hookedu.exercises.feedback import ShownVerdict, panel
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import probe
from hookedu.language import Text
from hookedu.learner.progress import Progress

_hints_given: dict[str, int] = {}  # in this kernel: a new session starts from the first hint
_MISSING = object()


class Notice:
    """Something to say that is no verdict; shown like one."""

    def __init__(self, says: Text, title: Text | None = None, colour: str = "--jp-info-color1, #0277bd"):
        self.says, self.title, self._colour = says, title, colour

    def __repr__(self) -> str:
        return "\n".join(str(text) for text in (self.title, self.says) if text)

    def _repr_html_(self) -> str:
        head = f'<div style="font-weight:600">{self.title.inline_html()}</div>' if self.title else ""
        return panel(self._colour, head + self.says.html())


def check(exercise_id: str, answer: Any = _MISSING) -> "ShownVerdict | Notice | int":
    """Try an answer on fresh input and say what came of it. Never raises for a learner's mistake.

    Inside nbgrader the value is the points earned, which is what nbgrader reads from the cell.
    """
    nbgrader = os.environ.get("NBGRADER_EXECUTION")  # "autograde" or "validate"
    # nbgrader gives 0 points to a cell that writes to standard error, were it a warning of torch's.
    with contextlib.redirect_stderr(sys.stdout) if nbgrader else contextlib.nullcontext():
        said = _try(exercise_id, answer)
    if nbgrader:
        return _for_nbgrader(said, nbgrader)
    if isinstance(said, ShownVerdict):
        storage.append_record(
            "checks",
            {
                "exercise": said.exercise.id,
                "outcome": said.outcome.value,
                "message": said.message_id,
                "points": said.points,
                "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            },
        )
    return said


def _try(exercise_id: str, answer: Any) -> "ShownVerdict | Notice":
    try:
        exercise = exercises.find(exercise_id)
    except exercises.UnknownExercise as unknown:
        return Notice(unknown.says)
    if answer is _MISSING:
        return Notice(
            Text(
                zh='还要把你的函数交给它：`check("{id}", {name})`',
                en='Hand it your function as well: `check("{id}", {name})`',
            ).format(id=exercise.id, name=exercise.answer)
        )
    seed = random.SystemRandom().getrandbits(32)  # not the learner's generator: a check must not advance it
    return ShownVerdict.of(judge(exercise, probe(exercise, answer, seed), seed))


def _for_nbgrader(said: "ShownVerdict | Notice", execution: str) -> int:
    """The points of a verdict, and its message where nbgrader shows it."""
    if isinstance(said, Notice):  # any value that is no number would count as full points
        raise catalog.CourseError(said.says)
    if execution == "validate" and said.outcome is not Outcome.CORRECT:
        print(said, file=sys.stderr)  # the one thing that `nbgrader validate` hands on to the student
    else:
        from IPython.display import display

        display(said)
    return said.points


def hint(exercise_id: str, number: int | None = None) -> Notice:
    """The next hint of an exercise, or hint `number`, counted from 1. The last one nearly gives it away."""
    try:
        exercise = exercises.find(exercise_id)
    except exercises.UnknownExercise as unknown:
        return Notice(unknown.says)
    of = len(exercise.hints)
    if number is None:
        number = _hints_given.get(exercise.id, 0) + 1
    number = min(max(number, 1), of)
    _hints_given[exercise.id] = max(number, _hints_given.get(exercise.id, 0))
    title = Text(zh="提示 {n}/{of}", en="Hint {n} of {of}").format(n=number, of=of)
    return Notice(exercise.hints[number - 1], title=title)


class Solution(Notice):
    """The reference answer, rendered by the front end in its own colours."""

    def __init__(self, exercise: Exercise, code: str):
        title = Text(zh="练习 {id} 的参考答案", en="Reference answer to {id}").format(id=exercise.id)
        super().__init__(exercise.insight, title=title)
        self.code = code

    def __repr__(self) -> str:
        return f"{self.title}\n\n{self.code}\n\n{self.says}"

    def _repr_markdown_(self) -> str:
        return f"{self.title.inline_html()}\n\n```python\n{self.code}\n```\n\n{self.says.html()}"

    _repr_html_ = None  # Markdown is the richer one here: the front end highlights the code


def solution(exercise_id: str, anyway: bool = False) -> Notice:
    """The reference answer. Before the first real attempt it asks to try first, unless `anyway=True`."""
    try:
        exercise = exercises.find(exercise_id)
    except exercises.UnknownExercise as unknown:
        return Notice(unknown.says)
    if not anyway and exercise.id not in Progress().tries:
        return Notice(
            Text(
                zh='先自己试一次，看看反馈怎么说；`hint("{id}")` 会给提示。现在就想看：`solution("{id}", anyway=True)`',
                en='Try it once first and read what the check says; `hint("{id}")` gives hints. '
                'To see it now: `solution("{id}", anyway=True)`',
            ).format(id=exercise.id)
        )
    try:
        return Solution(exercise, _reference(exercise))
    except (OSError, LookupError):
        return Notice(
            Text(
                zh="这里没有参考答案：找不到文件夹 `solutions`。",
                en="There is no reference answer here: the folder `solutions` is missing.",
            )
        )


def _reference(exercise: Exercise) -> str:
    """The reference answer from the answered notebook, without the markers around it."""
    notebook = json.loads(catalog.find(exercise.lesson).solution.read_bytes())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise.slug:
            return "".join(line for line in cell["source"] if not line.strip().startswith("### ")).rstrip()
    raise LookupError(exercise.id)
