"""guess(): takes a guess before the next cell runs, and shows it beside the truth afterwards."""

from typing import Any, ClassVar

import traitlets

from hookedu import guesses
from hookedu.catalog import CourseError
from hookedu.language import Text
from hookedu.widgets.lifetime import this_cell
from hookedu.widgets.live import LiveWidget

_SUFFIX = "-guess"  # of the id of a guess's cell; without it, it is the id of the cell that follows


def guess(id: str = "") -> "Guess | NoGuess":
    """Ask for a guess, and show it beside the truth once the next cell has run.

    Nobody has to guess. The first guess of each question is kept in the user's data folder, where ``progress`` counts it.
    It plays no part in grading.

    Parameters
    ----------
    id : str
        Which guess, such as ``"02.a"``: the lesson, then a letter.

    Returns
    -------
    Guess or NoGuess
        A widget that shows the question. Where the words of the course are not at hand, such as during grading, an object
        that does nothing; for an id that no guess has, one that says so.

    Examples
    --------
    >>> from hookedu import guess
    >>> guess("02.a")  # as a cell of its own; run it, guess, and run the next cell
    guess 02.a
    """
    try:
        return Guess(guesses.find(id))
    except guesses.UnknownGuess as unknown:
        return NoGuess(id, *unknown.says)
    except (CourseError, OSError):
        return NoGuess(id)


class NoGuess:
    """Stands for a guess whose words are not at hand, or that does not exist and `says` so."""

    def __init__(self, id: str, says: Text | None = None) -> None:
        self._id, self._says = id, says

    def __repr__(self) -> str:
        return str(self._says or f"guess {self._id}")


class Guess(LiveWidget, module="guess"):
    """Widget that asks one question; `guess` makes it.

    Attributes
    ----------
    said : str
        What was written, or the id of what was chosen; "" before.
    state : str
        "open" until there is an answer, "unread" for one that is no number, "noted" until the truth is known, then "right"
        or "wrong".
    """

    WORDS: ClassVar = {
        "label": Text(zh="猜一猜", en="Guess"),
        "number": Text(zh="你猜的数，再按 Enter", en="Your number, then Enter"),
        "text": Text(zh="你猜的结果，再按 Enter", en="Your answer, then Enter"),
        "open": Text(
            zh="不猜也可以，直接运行下一个单元格。", en="You may also skip this and run the next cell."
        ),
        "unread": Text(
            zh="请写一个数，例如 `3`、`0.25` 或 `1/4`。", en="Write a number, such as `3`, `0.25` or `1/4`."
        ),
        "noted": Text(
            zh="记下了。请点下一个单元格，再运行它。", en="Noted. Now click the next cell and run it."
        ),
        "you_said": Text(zh="你猜", en="Your guess"),
        "it_is": Text(zh="结果", en="The result"),
        "right": Text(zh="猜对了。", en="You had it right."),
        "wrong": Text(
            zh="和你想的不一样，正好看看为什么。", en="Not what you expected: a good moment to ask why."
        ),
    }

    kind = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode("open").tag(sync=True)

    def __init__(self, asked: guesses.Question) -> None:
        self._asked = asked
        self._truth: guesses.Value | None = None
        self._after = False  # whether the truth was there before the guess
        super().__init__(kind=asked.kind, choices=list(asked.choices))
        choices = {f"choice_{name}": words for name, words in asked.choices.items()}
        self.say(question=asked.question, **choices)
        self.observe(self.changed, "said")
        own, self._execution = this_cell()
        # Front ends that send no ids of cells get the truth after whatever cell runs next.
        self._awaited = own.removesuffix(_SUFFIX) if own and own.endswith(_SUFFIX) else None
        self._shell = _shell()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._cell_has_run)

    def _cell_has_run(self, result: Any) -> None:
        """Find the truth if it was the awaited cell that has run; one that was changed may not give it."""
        info = result.info
        if not result.success or info is None or guesses.asked_in(info.raw_cell or ""):
            return
        if this_cell()[1] == self._execution:  # of the cell that made this widget
            return
        assert self._shell is not None  # it has called this
        if self._awaited is not None and getattr(info, "cell_id", None) != self._awaited:
            return
        try:
            truth = self._asked.truth_in(self._shell.user_ns)
        except Exception:  # the learner's own code has other names or values
            return
        self._truth = truth
        self._unregister()
        self.changed()

    def _update(self) -> None:
        if self.state in ("right", "wrong"):
            return
        said = self._asked.read(self.said)
        if said is None:
            self._after = self._truth is not None
            self.state = "unread" if self.said.strip() else "open"
        elif self._truth is None:
            self.state = "noted"
        else:
            right = self._asked.is_right(said, self._truth)
            if not self._after:
                guesses.note(self._asked, said, self._truth, right)
            because = {"because": self._asked.because} if self._asked.because else {}
            self.say(yours=self._asked.show(said), truth=self._asked.show(self._truth), **because)
            self.state = "right" if right else "wrong"

    def _unregister(self) -> None:
        if self._shell is not None:
            self._shell.events.unregister("post_run_cell", self._cell_has_run)
            self._shell = None

    def _release(self) -> None:
        self._unregister()

    def _still(self) -> Text:
        return self._asked.question

    def __repr__(self) -> str:
        return f"guess {self._asked.id}"


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()
