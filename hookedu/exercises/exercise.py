"""An exercise: its probe, its table of checks and its words; and the verdict on an answer to it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hookedu.exercises.criteria import Check, Criterion, Line, says
from hookedu.exercises.probing import KINDS, Draw, Probe, undisturbed
from hookedu.exercises.words import NO_LINES, UNDECIDED, Words, WordsError, words_of
from hookedu.language import Text


class Outcome(StrEnum):
    """Outcome of an answer; the value is what a gradebook stores."""

    CORRECT = "correct"
    PARTLY = "partly_correct"
    INCORRECT = "incorrect"
    RAISED = "raised"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give, and the explanation they receive.

    Attributes
    ----------
    id : str
        Name of the mistake, unique within its exercise.
    says : Text
        Explanation shown to the learner: what is wrong and what to do about it.
    """

    id: str
    says: Text


_MAX_KNOWN = 1000  # seeds of which it is known that their case suits
_MAX_TRIES = 10_000  # to find a case that suits; the exercise with the rarest needs about 50


def _same(case: Any) -> Any:
    return case


def _any(case: Any) -> bool:
    return True


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: there is one object per exercise
class Exercise:
    """One exercise: the probe that runs an answer and the table of checks that grades it.

    When an answer is graded, the probe runs in the same process as the learner's code, and the checks are evaluated in
    a process where that code never ran. Both make the case from the same seed, and only observations, which are plain
    values, cross from one process to the other. The words stand in course/NN_name.yml.

    Attributes
    ----------
    probe : Probe
        What is observed of an answer, and on which case.
    checks : sequence of Check
        The requirements, in order of importance: the first that fails decides the message.
    given : Line
        The input as a message shows it, for checks that give none of their own.
    key : callable
        ``key(case)`` returns what the checks compare with, computed from the case without the reference answer. The
        case itself if omitted.
    suits : callable
        ``suits(case)`` tells whether a case is good enough, for instance whether known mistakes give different results
        on it. It is here and not in the probe because it may need to know the right answer.
    raises : mapping of str to str
        Mistakes recognised by the exception that the answer raises: id -> regular expression searched in
        "TypeError: the message". The first that matches is named.
    words : Words
        Title, hints, explanations and insight, loaded from the lesson's file of words.

    Raises
    ------
    WordsError
        On creation, if the ids of the checks and those of the words differ, or if a check has no words to show.
    """

    probe: Probe
    checks: Sequence[Check]
    given: Line = ""
    key: Callable[[Any], Any] = _same
    suits: Callable[[Any], bool] = _any
    raises: Mapping[str, str] = field(default_factory=dict)
    words: Words = field(init=False, repr=False)
    _suiting: set[tuple[int, int]] = field(init=False, repr=False, default_factory=set)  # seeds with turns

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", words_of(self.id))
        ids = [check.id for check in self.checks]
        for check in self.checks:
            if not (check.given or self.given) or not check.shows_values:
                raise WordsError(self.words.file, self.id, f"checks: {check.id}", NO_LINES)
            if not check.decides or ids.count(check.id) > 1:
                raise WordsError(self.words.file, self.id, f"checks: {check.id}", UNDECIDED)
        used = [mistake for check in self.checks for mistake in check.mistakes] + list(self.raises)
        lines = [self.given, *(line for c in self.checks for line in (c.given, c.expected, c.got))]
        self.words.must_match(used, [say.id for line in lines for say in says(line)])

    @property
    def id(self) -> str:
        """Lesson and position within the lesson, such as "02.1"."""
        return self.probe.id

    @property
    def answer(self) -> str:
        """Name that the learner defines."""
        return self.probe.answer

    @property
    def lesson(self) -> str:
        """Number of the lesson, such as "02"."""
        return self.id.split(".")[0]

    @property
    def slug(self) -> str:
        """Id in a form that nbgrader and notebook cell ids accept: "exercise-02-1"."""
        return "exercise-" + self.id.replace(".", "-")

    @property
    def points(self) -> int:
        """Highest number of points: the sum over all checks."""
        return sum(check.points for check in self.checks)

    def seeds(self, start: int) -> tuple[int, ...]:
        """Return the seeds of the cases of one check, all of which suit: the first is `start` if its case suits.

        Pass them to both `observe` and `judge`. They follow from the first one: ``seeds(seeds(start)[0])`` is the same.
        """
        found: list[int] = []
        for turn in range(self.probe.cases):
            seed = random.Random(f"{found[0]}/{turn}").getrandbits(32) if found else start
            found.append(seed if self.suits is _any else self._suited(seed, turn))
        return tuple(found)

    def _suited(self, seed: int, turn: int) -> int:
        with undisturbed():
            for _ in range(_MAX_TRIES):
                if self.has_suiting(self.probe.case(Draw.of(seed, turn)), seed, turn):
                    return seed
                # Not the next number: neighbours would meet in one case.
                seed = random.Random(seed).getrandbits(32)
        raise RuntimeError(f"{self.id}: none of {_MAX_TRIES} cases of turn {turn} suits")

    def has_suiting(self, case: Any, seed: int, turn: int) -> bool:
        """Check whether the case of this seed and turn suits: once for `seeds` and for the judge who receives them."""
        if (seed, turn) not in self._suiting:
            if not self.suits(case):
                return False
            if len(self._suiting) >= _MAX_KNOWN:
                self._suiting.clear()
            self._suiting.add((seed, turn))
        return True

    @property
    def title(self) -> Text:
        """Title of the exercise."""
        return self.words.title

    @property
    def hints(self) -> tuple[Text, ...]:
        """Graduated hints; the last one nearly gives the solution away."""
        return self.words.hints

    @property
    def insight(self) -> Text:
        """One sentence for those who solved the exercise: why the solution works."""
        return self.words.insight

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Known wrong answers, in the order of their explanations."""
        return tuple(Mistake(id, says) for id, says in self.words.mistakes.items())

    def mistake(self, mistake_id: str | None) -> Mistake | None:
        """Return the mistake of this exercise or of conduct with this id, or None."""
        known = self.words.conduct | self.words.mistakes
        return Mistake(mistake_id, known[mistake_id]) if mistake_id in known else None


@dataclass(frozen=True)
class Verdict:
    """The result of judging one answer, as `check` and the gradebook report it.

    Attributes
    ----------
    exercise : Exercise
        Exercise that was answered.
    outcome : Outcome
        Overall result.
    points : int
        Points earned, from 0 to ``exercise.points``.
    criteria : tuple of Criterion
        Judged criteria; empty unless the probe ran to its end.
    mistake : Mistake or None
        Recognised mistake.
    error : dict or None
        For `Outcome.RAISED`: the type, the message and the learner's own frames, as `probing.describe_error`
        returns them.
    wrong_type : str or None
        Name of the answer's type if the answer is not callable, or its kind if it is one of `probing.KINDS`.
    given : str or Text
        For `Outcome.RAISED`: the input, if it is not the first one tried.
    """

    exercise: Exercise
    outcome: Outcome
    points: int
    criteria: tuple[Criterion, ...] = ()
    mistake: Mistake | None = None
    error: dict[str, Any] | None = None
    wrong_type: str | None = None
    given: str | Text = ""

    @property
    def failed(self) -> Criterion | None:
        """First criterion that failed, which decides the message; None if all passed."""
        return next((c for c in self.criteria if not c.passed), None)

    @property
    def message_id(self) -> str:
        """Id of the message shown: that of the mistake, else of the failed criterion, else the outcome."""
        if self.mistake:
            return self.mistake.id
        if self.wrong_type:
            return self.wrong_type.replace(" ", "_") if self.wrong_type in KINDS else "not_callable"
        return self.failed.id if self.failed else self.outcome.value
