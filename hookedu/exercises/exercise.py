"""Data classes for exercises, their criteria and mistakes, and the verdict on an answer."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hookedu.language import Text


class Outcome(StrEnum):
    """Outcome of an answer; the value is what a gradebook stores."""

    CORRECT = "correct"
    PARTLY = "partly_correct"
    INCORRECT = "incorrect"
    RAISED = "raised"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True)
class Criterion:
    """One requirement on an answer, and whether the answer meets it.

    A judge returns its criteria in order of importance: the first that failed decides which message the
    learner gets. The points of all criteria of an exercise add up to `Exercise.points`.

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
    given, expected, got : str or Text
        Input used, result expected and result observed, as shown to the learner: code-like strings, or a `Text`
        where words are needed. An empty string leaves the row out.
    mistake : str or None
        Id of the `Mistake` that the judge recognises behind a failure. Ignored if the criterion passed.
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
    """A wrong answer that people really give, and the explanation they receive.

    If the answer returns, the judge recognises the mistake and names it in the failed criterion. If the answer
    raises, the mistake is recognised by its pattern `raises`.

    Attributes
    ----------
    id : str
        Name of the mistake, unique within its exercise.
    says : Text
        Explanation shown to the learner: what is wrong and what to do about it.
    fails : str
        Id of the criterion that fails because of this mistake. For readers only: no code acts on it.
    raises : str
        Regular expression searched in "TypeError: the message"; "" if the mistake raises nothing.
    """

    id: str
    says: Text
    fails: str = ""
    raises: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its texts, the probe that runs an answer and the judge that grades it.

    When an answer is graded, the probe runs in the same process as the learner's code and the judge in a process
    where that code never ran. Both receive a `random.Random` with the same seed, so both can make the same input
    and only observations, which are plain values, cross from one process to the other.

    Attributes
    ----------
    id : str
        Lesson and position within the lesson, such as "02.1".
    title : Text
        Title of the exercise.
    answer : str
        Name that the learner defines.
    points : int
        Highest number of points.
    probe : callable
        ``probe(answer, rng)`` calls the answer and returns observations: a dict that `observation.encode` can
        encode. It makes no judgement, and need not catch what the answer raises: `probing.probe` records it.
    judge : callable
        ``judge(observations, rng)`` returns the criteria, in order of importance.
    hints : tuple of Text
        Graduated hints; the last one nearly gives the solution away.
    mistakes : tuple of Mistake
        Known wrong answers.
    insight : Text
        One sentence for those who solved the exercise: why the solution works.
    """

    id: str
    title: Text
    answer: str
    points: int
    probe: Callable[[Any, random.Random], dict[str, Any]]
    judge: Callable[[dict[str, Any], random.Random], list[Criterion]]
    hints: tuple[Text, ...]
    mistakes: tuple[Mistake, ...]
    insight: Text

    @property
    def lesson(self) -> str:
        """Number of the lesson, such as "02"."""
        return self.id.split(".")[0]

    @property
    def slug(self) -> str:
        """Id in a form that nbgrader and notebook cell ids accept: "exercise-02-1"."""
        return "exercise-" + self.id.replace(".", "-")

    def mistake(self, mistake_id: str | None) -> Mistake | None:
        """Return the mistake with this id, or None."""
        return next((m for m in self.mistakes if m.id == mistake_id), None)


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
        Name of the answer's type if the answer is not callable.
    """

    exercise: Exercise
    outcome: Outcome
    points: int
    criteria: tuple[Criterion, ...] = ()
    mistake: Mistake | None = None
    error: dict[str, Any] | None = None
    wrong_type: str | None = field(default=None)

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
            return "not_callable"
        return self.failed.id if self.failed else self.outcome.value
