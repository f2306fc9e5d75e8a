"""Learner API of the exercises: check, hint and solution."""

import contextlib
import datetime
import json
import os
import random
import sys
from typing import Any

from hookedu import catalog, exercises, storage
from hookedu.cells import said_in
from hookedu.exercises.exercise import Exercise, Outcome
from hookedu.exercises.feedback import ShownVerdict
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import observe
from hookedu.language import Text, preference, shown
from hookedu.learner.links import Links
from hookedu.learner.notices import Notice, usage
from hookedu.learner.progress import Progress

# Number of the last hint shown by exercise id. It lives in the kernel: a new session starts from the first
# hint.
_hints_given: dict[str, int] = {}
_MISSING = object()
_NEARLY_ALL = Text(
    zh="这是最后一条，几乎就是答案。",
    en="This is the last hint and nearly the whole answer.",
)
_WHICH_HINT = Text(
    zh='第几条提示要写成不带引号的整数，1 到 {of}，例如 `hint("{id}", 1)`',
    en='Which hint is a whole number without quotes, from 1 to {of}, such as `hint("{id}", 1)`',
)
_NEXT_EXERCISE = Text(zh="下一题：{id} {title}", en="Next exercise: {id} {title}")
_NEXT_LESSON = Text(zh="下一课：{id} {title}", en="Next lesson: {id} {title}")


class _Checked(ShownVerdict):
    """A verdict that links to what comes next once the answer is right."""

    def _next_html(self) -> str:
        if self.outcome is not Outcome.CORRECT:
            return ""
        here = catalog.find(self.exercise.lesson)
        of_lesson, lessons = exercises.of_lesson(here.id), catalog.lessons()
        if later := of_lesson[of_lesson.index(self.exercise) + 1 :]:
            lesson, following, name = here, later[0], later[0]
        elif after := lessons[lessons.index(here) + 1 :]:
            lesson, following, name = after[0], None, after[0]
        else:
            return ""
        links = Links()
        if links.to(lesson, following) is None:
            return ""
        words = _NEXT_EXERCISE if following else _NEXT_LESSON
        words = words.format(id=name.id, title=name.title)
        return f'<div style="margin-top:.3em">{links.around(words.inline_html(), lesson, following)}</div>'


@usage('check("02.1", watch)')
def check(exercise_id: str = "", answer: Any = _MISSING) -> "ShownVerdict | Notice | int":
    """Check an answer to an exercise on several fresh random inputs.

    It must be right for all of them; the message speaks of the first for which it is not. What it does besides counts
    as well: changing its arguments, leaving hooks behind, swallowing an exception and the like.

    A mistake never raises: an answer that raises an exception, that is not callable or that is still the
    untouched stub gets a verdict which explains that. Every verdict is recorded in the user's data folder,
    where ``progress`` finds it.

    Inside nbgrader nothing is recorded, and the value is the number of points earned, because that is what
    nbgrader reads from the cell.

    Parameters
    ----------
    exercise_id : str
        The number of the exercise, such as ``"02.1"``: the lesson, then the place in the lesson. Without it, a notice
        asks for it.
    answer : callable, optional
        The function or class that the exercise asks for; pass ``watch``, not ``watch(...)``.

    Returns
    -------
    ShownVerdict, Notice or int
        A verdict with its ``outcome`` and ``points``. It is displayed as a panel in a notebook and as plain
        text elsewhere, in the chosen language, or in both where none was chosen: the input used, the expected and
        the actual result, the recognised mistake, and the next step. If the exercise does not exist or ``answer``
        is missing, a notice that says what to write instead. Inside nbgrader, the points.

    Raises
    ------
    CourseError
        Inside nbgrader only, in place of a notice: nbgrader gives full points for any value that is not a
        number.

    Examples
    --------
    >>> from hookedu import check
    >>> def watch(y, seen):
    ...     return y.register_hook(seen.append)
    >>> verdict = check("02.1", watch)
    >>> verdict.outcome.value, verdict.points
    ('correct', 3)

    The exercise asks for the handle, which this answer does not return:

    >>> def watch(y, seen):
    ...     y.register_hook(seen.append)
    >>> check("02.1", watch)
    ◐ 02.1 部分正确 · Partly correct — 2/3 分 · 2 of 3 points
    ...
    What you return is not the handle itself...
    """
    nbgrader = os.environ.get("NBGRADER_EXECUTION")  # "autograde" or "validate"
    # nbgrader gives 0 points to a cell that writes to stderr, even if that is only a warning from torch.
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
    # A generator of its own: a check must not advance the learner's.
    seeds = exercise.seeds(random.SystemRandom().getrandbits(32))
    return _Checked.of(judge(exercise, observe(exercise.probe, answer, seeds), seeds))


def _for_nbgrader(said: "ShownVerdict | Notice", execution: str) -> int:
    """Return the points of a verdict and send its message to where nbgrader shows it."""
    if isinstance(said, Notice):  # nbgrader gives full points for a value that is not a number
        raise catalog.CourseError(said.says)
    if execution == "validate" and said.outcome is not Outcome.CORRECT:
        print(said, file=sys.stderr)  # the only output that `nbgrader validate` shows to the student
    else:
        from IPython.display import display

        display(said)
    return said.points


@usage('hint("02.1")', 'hint("02.1", 2)')
def hint(exercise_id: str = "", number: int | None = None) -> Notice:
    """Return the next hint for an exercise.

    Hints become more explicit. The last one nearly gives the answer away: in a notebook it says so first, and has to be
    opened. Each call returns the next hint, and the last one again once all are shown. A new kernel starts from the
    first hint.

    Parameters
    ----------
    exercise_id : str
        The number of the exercise, such as ``"02.1"``. Without it, a notice asks for it.
    number : int, optional
        The hint to return, counted from 1, instead of the next one. Values out of range give the first or the
        last hint.

    Returns
    -------
    Notice
        The hint, displayed as a panel in a notebook and as plain text elsewhere, in the chosen language, or in both
        where none was chosen. If the exercise does not exist, a notice that names the nearest numbers, and if `number`
        is none, one that says what to write.

    Examples
    --------
    >>> from hookedu import hint
    >>> hint("02.1", number=1)
    提示 1/3
    Hint 1 of 3
    ...
    A hook is a function of 1 argument...
    """
    try:
        exercise = exercises.find(exercise_id)
    except exercises.UnknownExercise as unknown:
        return Notice(unknown.says)
    of = len(exercise.hints)
    if not isinstance(number, int | None):
        return Notice(_WHICH_HINT.format(id=exercise.id, of=of))
    if number is None:
        number = _hints_given.get(exercise.id, 0) + 1
    number = min(max(number, 1), of)
    _hints_given[exercise.id] = max(number, _hints_given.get(exercise.id, 0))
    title = Text(zh="提示 {n}/{of}", en="Hint {n} of {of}").format(n=number, of=of)
    return Notice(exercise.hints[number - 1], title=title, behind=_NEARLY_ALL if number == of else None)


class Solution:
    """A reference answer as Markdown, so that the front end highlights the code.

    There is no HTML version, which front ends would prefer to the Markdown.
    """

    def __init__(self, exercise: Exercise, code: str):
        self.title = Text(zh="练习 {id} 的参考答案", en="Reference answer to {id}").format(id=exercise.id)
        self.says = exercise.insight
        self.code = code

    def __repr__(self) -> str:
        return f"{self.title}\n\n{self.code}\n\n{self.says}"

    def _repr_markdown_(self) -> str:
        return shown(f"{self.title.inline_html()}\n\n```python\n{self.code}\n```\n\n{self.says.html()}")


@usage('solution("02.1")')
def solution(exercise_id: str = "", anyway: bool = False) -> Solution | Notice:
    """Return the reference answer to an exercise.

    Before the first recorded attempt a notice asks the learner to try first. Checking the untouched stub does
    not count as an attempt.

    Parameters
    ----------
    exercise_id : str
        The number of the exercise, such as ``"02.1"``. Without it, a notice asks for it.
    anyway : bool, default False
        Return the answer without an attempt.

    Returns
    -------
    Solution or Notice
        The answer, with its code in ``code`` and an explanation in ``says``; a notebook displays it with
        highlighted code. A notice before the first attempt, if the exercise does not exist, or if the folder
        ``solutions`` is missing.

    Examples
    --------
    >>> from hookedu import solution
    >>> print(solution("02.1", anyway=True).code)
    def watch(y, seen):
        ...
        return y.register_hook(keep)
    """
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
    except (OSError, LookupError, ValueError):
        return Notice(
            Text(
                zh="这里没有参考答案：找不到文件夹 `solutions`。",
                en="There is no reference answer here: the folder `solutions` is missing.",
            )
        )


def _reference(exercise: Exercise) -> str:
    """Return the reference answer from the solution notebook, in the chosen language, without the markers around it."""
    notebook = json.loads(catalog.find(exercise.lesson).solution.read_bytes())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise.slug:
            lines = said_in(cell, preference.language).splitlines(True)
            return "".join(line for line in lines if not line.strip().startswith("### ")).rstrip()
    raise LookupError(exercise.id)
