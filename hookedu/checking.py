"""The learner's face of the exercises: check, hint, solution, progress."""

import datetime
import html
import json
import os
import random
from typing import Any

from hookedu import course, exercises, storage
from hookedu.exercises.feedback import LOOKS, panel
from hookedu.exercises.judging import Verdict, judge
from hookedu.exercises.model import Exercise, Outcome
from hookedu.exercises.probing import probe
from hookedu.language import Text

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


def check(exercise_id: str, answer: Any = _MISSING) -> "Verdict | Notice | int":
    """Try an answer on fresh input and say what came of it. Never raises for a learner's mistake.

    Inside `nbgrader autograde` the value is the points earned, which is what nbgrader reads from the cell.
    """
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
    verdict = judge(exercise, probe(exercise, answer, seed), seed)
    if os.environ.get("NBGRADER_EXECUTION"):
        from IPython.display import display

        display(verdict)
        return verdict.points
    storage.append_record(
        "checks",
        {
            "exercise": exercise.id,
            "outcome": verdict.outcome.value,
            "message": verdict.message_id,
            "points": verdict.points,
            "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        },
    )
    return verdict


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
    if not anyway and not _attempted(exercise):
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


def _attempted(exercise: Exercise) -> bool:
    return any(
        r.get("exercise") == exercise.id and r.get("outcome") != Outcome.NOT_ATTEMPTED.value
        for r in storage.read_records("checks")
    )


def _reference(exercise: Exercise) -> str:
    """The reference answer from the answered notebook, without the markers around it."""
    notebook = json.loads(course.find(exercise.lesson).solution.read_bytes())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise.slug:
            return "".join(line for line in cell["source"] if not line.strip().startswith("### ")).rstrip()
    raise LookupError(exercise.id)


class Progress:
    """Which exercises were solved, tried and left: the best outcome of each, over all sessions."""

    _RANK = (Outcome.CORRECT, Outcome.PARTLY, Outcome.INCORRECT, Outcome.RAISED, Outcome.NOT_ATTEMPTED)

    def __init__(self) -> None:
        self.best: dict[str, Outcome] = {}
        self.tries: dict[str, int] = {}
        for record in storage.read_records("checks"):
            try:
                outcome, exercise_id = Outcome(record["outcome"]), exercises.find(record["exercise"]).id
            except (KeyError, ValueError):
                continue  # written by another version of the course
            known = self.best.get(exercise_id, Outcome.NOT_ATTEMPTED)
            self.best[exercise_id] = min(known, outcome, key=self._RANK.index)
            self.tries[exercise_id] = self.tries.get(exercise_id, 0) + (outcome is not Outcome.NOT_ATTEMPTED)

    @property
    def solved(self) -> int:
        """How many exercises are solved."""
        return sum(outcome is Outcome.CORRECT for outcome in self.best.values())

    def _rows(self):
        for lesson in course.lessons():
            for exercise in exercises.of_lesson(lesson.id):
                yield (
                    lesson,
                    exercise,
                    self.best.get(exercise.id, Outcome.NOT_ATTEMPTED),
                    self.tries.get(exercise.id, 0),
                )

    def _summary(self) -> Text:
        of = sum(1 for _ in self._rows())
        said = Text(zh="已完成 {n}/{of} 个练习", en="{n} of {of} exercises solved").format(
            n=self.solved, of=of
        )
        if storage.writable():
            return said
        return Text(
            zh=said.zh + "（这台机器上无法保存进度）",
            en=said.en + " (progress cannot be saved on this machine)",
        )

    def __repr__(self) -> str:
        lines = [str(self._summary())]
        for _, exercise, outcome, tries in self._rows():
            lines.append(
                f"{LOOKS[outcome][0]} {exercise.id} {exercise.title.zh} · {exercise.title.en} ({tries})"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = (
            Text(zh="课", en="Lesson"),
            Text(zh="练习", en="Exercise"),
            Text(zh="结果", en="Outcome"),
            Text(zh="次数", en="Tries"),
        )
        cell = '<td style="text-align:left;padding:.15em 1em .15em 0">{}</td>'
        rows = []
        for lesson, exercise, outcome, tries in self._rows():
            sign, _, word = LOOKS[outcome]
            mark = f"{sign} {word.inline_html()}"
            name = f"{html.escape(exercise.id)} {exercise.title.inline_html()}"
            cells = (lesson.title.inline_html(), name, mark, str(tries or ""))
            rows.append("<tr>" + "".join(map(cell.format, cells)) + "</tr>")
        titles = "".join(
            f'<th style="text-align:left;padding-right:1em">{t.inline_html()}</th>' for t in head
        )
        table = f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return panel("--jp-info-color1, #0277bd", f"<b>{self._summary().inline_html()}</b>{table}")


def progress() -> Progress:
    """What has been solved so far, over all notebooks and sessions of this user."""
    return Progress()
