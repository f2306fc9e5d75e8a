"""Progress of a learner: the state of every exercise, and which one is next."""

import html

from hookedu import catalog, exercises, guesses, storage
from hookedu.catalog import Lesson
from hookedu.exercises.exercise import Exercise, Outcome
from hookedu.exercises.feedback import LOOKS, panel
from hookedu.language import Text, shown
from hookedu.learner.links import Links
from hookedu.learner.notices import usage

# Visible to screen readers only; on the page the sign carries the information.
_HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap"
_PLAIN = "background:none;border:none;font-weight:400;padding:.15em .3em"


class Progress:
    """Best outcome and number of attempts of each exercise, over all sessions.

    Records of checks that this version of the course does not know are skipped.

    Attributes
    ----------
    best : dict of str to Outcome
        Best outcome by exercise id, for the exercises that were ever checked.
    tries : dict of str to int
        Number of checks by exercise id; checks of the untouched stub do not count.
    guesses : dict of str to bool
        By id of the guess whether the first one was right, for those that were made.
    begun : set of str
        Lessons in which something was tried or guessed.
    """

    _RANK = (Outcome.CORRECT, Outcome.PARTLY, Outcome.INCORRECT, Outcome.RAISED, Outcome.NOT_ATTEMPTED)

    def __init__(self) -> None:
        self.best: dict[str, Outcome] = {}
        self.tries: dict[str, int] = {}
        self.guesses = guesses.score()
        self.begun = {id.split(".")[0] for id in self.guesses}
        self._last: str | None = None
        for record in storage.read_records("checks"):
            try:
                outcome, exercise_id = Outcome(record["outcome"]), exercises.find(record["exercise"]).id
            except (KeyError, ValueError):
                continue
            known = self.best.get(exercise_id, Outcome.NOT_ATTEMPTED)
            self.best[exercise_id] = min(known, outcome, key=self._RANK.index)
            if outcome is not Outcome.NOT_ATTEMPTED:  # "Run All" checks every stub, which is no attempt
                self.tries[exercise_id] = self.tries.get(exercise_id, 0) + 1
                self._last = exercise_id
                self.begun.add(exercise_id.split(".")[0])

    @property
    def solved(self) -> int:
        """Number of solved exercises."""
        return sum(outcome is Outcome.CORRECT for outcome in self.best.values())

    @property
    def next(self) -> Exercise | None:
        """The exercise to do next, or None if all are solved.

        It is the first unsolved exercise from the one tried last onwards; after the end of the course the
        search goes on from the start, so that skipped exercises come last.
        """
        in_order = [exercise for _, of_lesson in _lessons() for exercise in of_lesson]
        ids = [exercise.id for exercise in in_order]
        here = ids.index(self._last) if self._last else 0
        from_here = in_order[here:] + in_order[:here]
        return next((e for e in from_here if self.outcome(e) is not Outcome.CORRECT), None)

    def outcome(self, exercise: Exercise) -> Outcome:
        """Return the best outcome of an exercise so far."""
        return self.best.get(exercise.id, Outcome.NOT_ATTEMPTED)

    @property
    def summary(self) -> Text:
        """Number of solved exercises in words, with a remark if progress cannot be saved."""
        of = sum(len(of_lesson) for _, of_lesson in _lessons())
        said = Text(zh="已完成 {n}/{of} 个练习", en="{n} of {of} exercises solved").format(
            n=self.solved, of=of
        )
        if storage.writable():
            return said
        return Text(
            zh=said.zh + "（这台机器上无法保存进度）",
            en=said.en + " (progress cannot be saved on this machine)",
        )

    @property
    def guessed(self) -> Text | None:
        """Number of right guesses in words; None before the first guess."""
        if not self.guesses:
            return None
        return Text(zh="猜过 {of} 次，猜对 {n} 次", en="{n} of {of} guesses right").format(
            n=sum(self.guesses.values()), of=len(self.guesses)
        )

    @property
    def next_step(self) -> Text:
        """The exercise to do next, in words."""
        following = self.next
        if following is None:
            return Text(
                zh="全部完成：整门课的练习都做对了。", en="All done: every exercise of the course is solved."
            )
        lesson = catalog.find(following.lesson)
        return Text(
            zh="接下来：{id} {title}（第 {lesson} 课「{of}」）",
            en="Next: {id} {title} (lesson {lesson}, {of})",
        ).format(id=following.id, title=following.title, lesson=lesson.id, of=lesson.title)

    def __repr__(self) -> str:
        lines = [str(text) for text in (self.summary, self.guessed, self.next_step) if text] + [""]
        rows = _lessons()
        most = max((len(of_lesson) for _, of_lesson in rows), default=0)
        for lesson, of_lesson in rows:
            signs = [LOOKS[self.outcome(exercise)][0] for exercise in of_lesson]
            signs += [" "] * (most - len(signs))
            lines.append(f"{lesson.id}  {' '.join(signs)}  {lesson.title.inline()}")
        legend = (f"{sign} {word.inline()}" for sign, _, word in LOOKS.values())
        return "\n".join([*lines, "", *legend])

    def _repr_html_(self) -> str:
        return shown(_Picture(self).html())


class _Picture:
    """HTML table with one row per lesson and one cell per exercise, linked to notebooks in the same folder."""

    def __init__(self, progress: Progress):
        self.progress, self.next = progress, progress.next
        self.links = Links()

    def html(self) -> str:
        step = self.progress.next_step.inline_html()
        if self.next:
            step = self.linked(step, catalog.find(self.next.lesson), self.next)
        numbers = range(1, 1 + max((len(of_lesson) for _, of_lesson in _lessons()), default=0))
        columns = [
            (Text(zh="课", en="Lesson").inline_html(), "left"),
            (Text(zh="分钟", en="min").inline_html(), "right"),
            *((str(n), "center") for n in numbers),
            *([(Text(zh="猜对", en="Guessed").inline_html(), "right")] if self.progress.guesses else []),
        ]
        head = "".join(
            f'<th scope="col" style="{_PLAIN};text-align:{side}">{name}</th>' for name, side in columns
        )
        rows = "".join(self.row(lesson, of_lesson) for lesson, of_lesson in _lessons())
        guessed = self.progress.guessed
        guessed = f"<div>{guessed.inline_html()}</div>" if guessed else ""
        legend = "".join(
            f'<span style="display:inline-block;margin-right:1.2em">{sign} {word.inline_html()}</span>'
            for sign, _, word in LOOKS.values()
        )
        return panel(
            "--jp-info-color1, #0277bd",
            f'<div style="font-weight:600">{self.progress.summary.inline_html()}</div>{guessed}<div>{step}</div>'
            f'<table style="margin:.5em 0;border-collapse:separate;border-spacing:0;font-size:inherit">'
            f'<thead style="border:none"><tr style="background:none">{head}</tr></thead><tbody>{rows}</tbody></table>'
            f'<div style="font-size:.9em">{legend}</div>',
        )

    def row(self, lesson: Lesson, of_lesson: tuple[Exercise, ...]) -> str:
        title = self.links.around(f"{lesson.id} {lesson.title.inline_html()}", lesson)
        cells = "".join(f'<td style="{_PLAIN}">{self.cell(lesson, e)}</td>' for e in of_lesson)
        made = [right for id, right in self.progress.guesses.items() if id.startswith(lesson.id)]
        score = f"{sum(made)}/{len(made)}" if made else ""
        missing = max(len(others) for _, others in _lessons()) - len(of_lesson)
        if self.progress.guesses:
            cells += (
                f'<td style="{_PLAIN}"></td>' * missing
                + f'<td style="{_PLAIN};text-align:right">{score}</td>'
            )
        return (
            f'<tr style="background:none"><th scope="row" style="{_PLAIN};text-align:left">{title}</th>'
            f'<td style="{_PLAIN};text-align:right">{lesson.minutes}</td>{cells}</tr>'
        )

    def cell(self, lesson: Lesson, exercise: Exercise) -> str:
        outcome = self.progress.outcome(exercise)
        sign, colour, word = LOOKS[outcome]
        says = Text(
            zh="{id} {title}：{outcome}，试过 {n} 次", en="{id} {title}: {outcome}, tries: {n}"
        ).format(
            id=exercise.id, title=exercise.title, outcome=word, n=self.progress.tries.get(exercise.id, 0)
        )
        style = (
            "display:block;position:relative;width:2em;line-height:1.5;text-align:center;border-radius:3px;"
        )
        if outcome is Outcome.NOT_ATTEMPTED:
            style += "border:1px solid var(--jp-border-color1, #bdbdbd);"
        else:  # a light tint, on which the text colour of any theme is readable
            style += f"border:1px solid var({colour});"
            style += f"background-color:color-mix(in srgb, var({colour}) 25%, transparent);"
        current = ""
        if exercise is self.next:
            style += "outline:2px solid currentColor;outline-offset:1px;"
            current = ' aria-current="step"'
        box = (
            f'<span data-exercise="{exercise.id}" data-outcome="{outcome.value}" title="{html.escape(says.inline())}" '
            f'style="{style}"{current}><span aria-hidden="true">{sign}</span>'
            f'<span style="{_HIDDEN}">{says.inline_html()}</span></span>'
        )
        return self.linked(box, lesson, exercise, "color:inherit;text-decoration:none")

    def linked(self, inner: str, lesson: Lesson, exercise: Exercise, style: str = "") -> str:
        """Return `inner` linked to an exercise, or to the top of a lesson that was not begun: its cells need those above."""
        begun = lesson.id in self.progress.begun or lesson.notebook.name == self.links.here
        return self.links.around(inner, lesson, exercise if begun else None, style)


def _lessons() -> list[tuple[Lesson, tuple[Exercise, ...]]]:
    """Return every lesson that has exercises, together with its exercises."""
    pairs = ((lesson, exercises.of_lesson(lesson.id)) for lesson in catalog.lessons())
    return [(lesson, of_lesson) for lesson, of_lesson in pairs if of_lesson]


@usage("progress()")
def progress() -> Progress:
    """Return the progress of this user, over all notebooks and sessions.

    The records of ``check`` are read from the user's data folder at each call.

    Returns
    -------
    Progress
        Displayed in a notebook as a table with one row per lesson and one cell per exercise, linked to the
        lessons that are in the same folder; as plain text elsewhere. Its attributes: ``best``, the best
        outcome by exercise number; ``tries``, the number of attempts by exercise number; ``solved``, the
        number of solved exercises; ``guesses``, by number whether the first guess was right; ``next``, the exercise to do
        next, or None if all are solved.

    Examples
    --------
    >>> from hookedu import check, progress
    >>> def watch(y, seen):
    ...     return y.register_hook(seen.append)
    >>> verdict = check("02.1", watch)
    >>> progress()
    已完成 1/... 个练习
    1 of ... exercises solved
    接下来：02.2 ...
    Next: 02.2 ...
    ...
    >>> progress().tries
    {'02.1': 1}
    """
    return Progress()
