"""Checks: the table by which an exercise judges what its probe observed.

A check is one row: what is compared with what, how many points it is worth, what a message shows, and the mistakes
that may be behind a failure, each with the condition that tells it. Conditions and values are functions of two things:
`saw`, the observations by name (``saw.x_grad``), and `key`, what the exercise expects (see `Exercise.key`).
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookedu.exercises.observation import ObservationError, show
from hookedu.exercises.tools import same
from hookedu.language import Text

Of = Callable[[Any, Any], Any]  # a function of (saw, key)

# What operations raise on a value of the wrong kind. Observations may be anything, and conditions and lines are written
# for those of the right kind: for any other a condition does not hold, and a line shows the bare value.
_UNFIT = (TypeError, ValueError, AttributeError, LookupError, RuntimeError, ArithmeticError, StopIteration)


class UnknownField(Exception):
    """Raised for a field of a line that does not exist: the exercise has a defect."""


class Saw:
    """Observations by name; ObservationError for a name that is missing, because a probe reports all of its own."""

    __slots__ = ("_observations",)

    def __init__(self, observations: Mapping[Any, Any]) -> None:
        self._observations = observations

    def __getattr__(self, name: str) -> Any:
        try:
            return self._observations[name]
        except KeyError:
            raise ObservationError(f"no observation named {name!r}") from None


class Say:
    """Words of a message, by their id among the `lines` of the exercise in course/NN_name.yml.

    The words may hold fields: ``{saw.left}``, ``{key.n}``, ``{case.x}``; ``{value}``, which is what is wanted if the words
    are expected, and what was observed if they are got; or a name from `values`, each a constant or a function of
    (saw, key).

    Parameters
    ----------
    id : str
        Id of the words.
    when : bool or callable, default True
        Where a message has several ways to say it, the condition for this one.
    **values : object
        Values of further fields.
    """

    def __init__(self, id: str, when: "bool | Of" = True, **values: Any) -> None:
        self.id, self.when, self.values = id, when, values


# What a message shows as input, expected or got: code with fields as in `Say`; a function that returns code; words; or
# several of these, of which the first is taken whose condition holds (only that of a `Say` can fail to hold).
Line = str | Of | Say | Sequence[str | Of | Say]


def says(line: Line) -> Iterator[Say]:
    """Yield the words in a line, without those that a function returns."""
    for one in [line] if isinstance(line, Say) else line if isinstance(line, Sequence) else ():
        if isinstance(one, Say):
            yield one


class Gives:
    """Condition of a mistake: what was observed equals one of the values that the mistake gives.

    Parameters
    ----------
    *values : callable
        Each returns one such value from the key.
    """

    def __init__(self, *values: Callable[[Any], Any]) -> None:
        self.values = values


class Throughout:
    """Condition of a mistake that must explain every case, also those in which the requirement is met.

    Where what a mistake gives is a single number, another mistake may well give the same number in the one case that fails.

    Parameters
    ----------
    *ways : callable
        Conditions of (saw, key), of which one and the same must hold in all cases.
    """

    def __init__(self, *ways: Of) -> None:
        self.ways = ways


@dataclass(frozen=True)
class Criterion:
    """One requirement on an answer, and whether the answer meets it.

    Attributes
    ----------
    id : str
        Name of the requirement, unique within its exercise. Identifies the message if no mistake is recognised.
    passed : bool
        Whether the answer meets the requirement.
    points : int
        Points that the answer earns by meeting it.
    essential : bool
        If an essential criterion fails, the whole answer scores 0, whatever else it does right.
    mistakes : tuple of str
        Ids of the mistakes that fit the failure, in the order in which they are tried.
    lines : callable
        ``lines(name)`` writes the line `given`, `expected` or `got`, on demand: a grader shows few of them.
    turn : int
        Place of the case that the lines speak of.
    ways : callable
        ``ways(mistake)`` returns which ways of a `Throughout` hold in this case; {0} for any other condition.
    """

    id: str
    passed: bool
    points: int = 0
    essential: bool = False
    mistakes: tuple[str, ...] = ()
    lines: "Callable[[str], str | Text]" = lambda name: ""
    turn: int = 0
    ways: Callable[[str], set[int]] = lambda mistake: {0}

    @property
    def mistake(self) -> str | None:
        """Id of the mistake recognised behind a failure: the first that fits."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def given(self) -> str | Text:
        """Input used, as shown to the learner."""
        return self.lines("given")

    @property
    def expected(self) -> str | Text:
        """Result expected."""
        return self.lines("expected")

    @property
    def got(self) -> str | Text:
        """Result observed; empty if the answer meets the requirement."""
        return "" if self.passed else self.lines("got")


@dataclass(frozen=True)
class Check:
    """One requirement: an observation equals what is wanted, or a condition holds.

    Attributes
    ----------
    id : str
        Name of the requirement, unique within its exercise.
    observed : str
        Name of the observation that is compared with `want`. Also what `Gives` compares, if `ok` decides.
    want : callable or None
        ``want(key)`` returns the value that the observation must equal.
    ok : callable or None
        Condition that must hold. With `want` as well, it decides and `want` is what the message shows.
    points : int
        Points for meeting it.
    essential : bool
        Whether a failure leaves the whole answer with 0 points.
    given : Line
        Input shown; empty for that of the exercise.
    expected, got : Line
        Lines shown. If `want` is given and they are empty, ``label == value``.
    label : str
        What a message calls the observation; its name if empty.
    equal : callable
        ``equal(observed, wanted)``, used for `want` and `Gives`.
    mistakes : mapping of str to (bool, callable, Gives or Throughout)
        Mistakes by id, in the order in which they are tried; True fits whatever failed.
    """

    id: str
    observed: str = ""
    want: Callable[[Any], Any] | None = None
    ok: Of | None = None
    points: int = 0
    essential: bool = False
    given: Line = ""
    expected: Line = ""
    got: Line = ""
    label: str = ""
    equal: Callable[[Any, Any], bool] = same
    mistakes: "Mapping[str, bool | Of | Gives | Throughout]" = field(default_factory=dict)

    @property
    def shows_values(self) -> bool:
        """Whether a message about this check has something to show as expected and as got."""
        return bool(self.want or (self.expected and self.got))

    @property
    def decides(self) -> bool:
        """Whether there is something to compare: a condition, or an observation with what is wanted."""
        compares = any(isinstance(when, Gives) for when in self.mistakes.values())
        return bool(self.ok or (self.want and self.observed)) and bool(self.observed or not compares)

    def judged(
        self, observations: dict[Any, Any], case: Any, key: Any, given: Line, words: Mapping[str, Text]
    ) -> Criterion:
        """Return the criterion for these observations.

        Parameters
        ----------
        observations : dict
            What the probe observed, decoded.
        case, key : object
            The case, and what the exercise expects of it.
        given : Line
            The exercise's own line for the input.
        words : mapping of str to Text
            The words that `Say` refers to.
        """
        saw = Saw(observations)
        value = getattr(saw, self.observed) if self.observed else None
        want = self.want(key) if self.want else None
        passed = self._holds(self.ok, saw, key) if self.ok else self._equals(value, want)
        fields = {"saw": saw, "case": case, "key": key, "want": want}

        def line(name: str) -> str | Text:
            label = self.label or self.observed
            said, otherwise, shown = {
                "given": (self.given or given, "", None),
                "expected": (self.expected, f"{label} == {show(want)}", want),
                "got": (self.got, f"{label} == {show(value)}", value),
            }[name]
            try:
                return _said(said, saw, key, fields | {"value": shown}, words) if said else otherwise
            except ObservationError:
                raise
            except _UNFIT:
                return otherwise

        def ways(mistake: str) -> set[int]:
            when = self.mistakes[mistake]
            if not isinstance(when, Throughout):
                return {0}
            return {n for n, way in enumerate(when.ways) if self._holds(way, saw, key)}

        mistakes = () if passed else tuple(self._fitting(value, saw, key))
        return Criterion(self.id, passed, self.points, self.essential, mistakes, line, ways=ways)

    def _fitting(self, value: Any, saw: Saw, key: Any) -> Iterator[str]:
        for mistake, when in self.mistakes.items():
            if isinstance(when, Gives):
                if any(self._equals(value, gives(key)) for gives in when.values):
                    yield mistake
            elif isinstance(when, Throughout):
                if any(self._holds(way, saw, key) for way in when.ways):
                    yield mistake
            elif self._holds(when, saw, key):
                yield mistake

    def _equals(self, value: Any, want: Any) -> bool:
        try:
            return bool(self.equal(value, want))
        except _UNFIT:
            return False

    @staticmethod
    def _holds(when: bool | Of, saw: Saw, key: Any) -> bool:
        try:
            return bool(when(saw, key) if callable(when) else when)
        except ObservationError:
            raise
        except _UNFIT as error:
            if getattr(error, "obj", None) is key:
                raise  # a misspelt name of the key: the exercise has a defect
            return False


def _said(line: Line, saw: Saw, key: Any, fields: Mapping[str, Any], words: Mapping[str, Text]) -> str | Text:
    """Return a line with its fields filled in."""
    if isinstance(line, str):
        return _FILLER.vformat(line, (), fields)
    if isinstance(line, Say):
        values = {name: v(saw, key) if callable(v) else v for name, v in line.values.items()}
        text, filled = words[line.id], {**fields, **values}
        return Text(zh=_FILLER.vformat(text.zh, (), filled), en=_FILLER.vformat(text.en, (), filled))
    if callable(line):
        return line(saw, key)
    for one in line:
        if not isinstance(one, Say) or Check._holds(one.when, saw, key):
            return _said(one, saw, key, fields, words)
    return ""


class _Filler(string.Formatter):
    """`str.format` that writes values as messages show them."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except _UNFIT as error:
            root = re.split(r"\W", field_name, maxsplit=1)[0]
            if root in kwargs and root not in ("key", "case", "want"):
                raise  # an observation of the wrong kind
            raise UnknownField(f"{{{field_name}}}") from error

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec or isinstance(value, str):
            return format(value, format_spec)
        return show(value)


_FILLER = _Filler()
