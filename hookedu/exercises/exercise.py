"""What an exercise is, and what can be said about an answer to it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hookedu.language import Text


class Outcome(StrEnum):
    """The five ways an answer can end. The value is what stands in a gradebook."""

    CORRECT = "correct"
    PARTLY = "partly_correct"
    INCORRECT = "incorrect"
    RAISED = "raised"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True)
class Criterion:
    """One thing an answer must do, and whether it did.

    given, expected, got: what went in, what should have come out, and what did; code-like strings, or a `Text`
    where words are needed. mistake: the id of the `Mistake` that the judge recognises behind a failure.
    essential: without it the whole answer is worth nothing, whatever else it does right.
    """

    id: str
    passed: bool
    points: int = 0
    essential: bool = False
    given: str | Text = ""
    expected: str | Text = ""
    got: str | Text = ""
    mistake: str | None = None


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give, and what it teaches.

    An answer that returns is recognised by the judge, which names the mistake in the failed criterion `fails`.
    One that raises is recognised by `raises`, a regular expression searched in "TypeError: the message".
    """

    id: str
    says: Text
    fails: str = ""
    raises: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise: the probe runs beside the learner's code, the judge where that code never ran.

    Both get a `random.Random` of the same seed, so that both can make the same input and only observations,
    plain values, cross from one side to the other.
    """

    id: str  # "02.1": lesson, then place in the lesson
    title: Text
    answer: str  # the name that the learner defines
    points: int
    probe: Callable[[Any, random.Random], dict[str, Any]]
    judge: Callable[[dict[str, Any], random.Random], list[Criterion]]
    hints: tuple[Text, ...]  # graduated: the last one nearly gives it away
    mistakes: tuple[Mistake, ...]
    insight: Text  # one sentence for who solved it: why it works

    @property
    def lesson(self) -> str:
        """The lesson's number, "02"."""
        return self.id.split(".")[0]

    @property
    def slug(self) -> str:
        """The id as nbgrader and cell ids can hold it: "exercise-02-1"."""
        return "exercise-" + self.id.replace(".", "-")

    def mistake(self, mistake_id: str | None) -> Mistake | None:
        """The mistake of that id, or None."""
        return next((m for m in self.mistakes if m.id == mistake_id), None)


@dataclass(frozen=True)
class Verdict:
    """What came of one answer: how `check` and the gradebook speak of it."""

    exercise: Exercise
    outcome: Outcome
    points: int
    criteria: tuple[Criterion, ...] = ()
    mistake: Mistake | None = None
    error: dict[str, Any] | None = None  # for RAISED: type, message, the learner's frames
    wrong_type: str | None = field(default=None)  # where the answer was not callable: what it was

    @property
    def failed(self) -> Criterion | None:
        """The first criterion that failed: the one to speak about."""
        return next((c for c in self.criteria if not c.passed), None)

    @property
    def message_id(self) -> str:
        """Which message the learner gets: the mistake's id, else the failed criterion's, else the outcome."""
        if self.mistake:
            return self.mistake.id
        if self.wrong_type:
            return "not_callable"
        return self.failed.id if self.failed else self.outcome.value
