"""What the parts of the grader hand to each other."""

import datetime
from dataclasses import dataclass, replace
from enum import StrEnum

from hookedu.exercises.feedback import Feedback
from hookedu.language import Text


class Status(StrEnum):
    """How a submission ended. The value is what stands in the gradebook."""

    GRADED = "graded"
    NOT_ATTEMPTED = "not_attempted"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    UNREADABLE = "unreadable"
    TAMPERED = "tampered"
    GRADER_ERROR = "grader_error"

    @property
    def fine(self) -> bool:
        """Whether nobody needs to look at it."""
        return self in (Status.GRADED, Status.NOT_ATTEMPTED)


LOST = "lost"  # the outcome of an exercise without a verdict: the process ended before it, or was not trusted


class Unreadable(Exception):
    """A submission that cannot be graded for what it is; `says` tells the instructor why."""

    def __init__(self, says: Text):
        self.says = says
        super().__init__(str(says))


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Time counts from its first cell on, without loading torch."""

    seconds: float = 60.0
    memory: int = 2048  # MiB on top of what torch takes
    file: int = 64  # MiB of one file written
    disk: int = 128  # MiB in all, with isolation
    processes: int = 64  # processes and threads at once, with isolation
    startup: float = 180.0  # seconds for what is ours to do


NO_FEEDBACK = Feedback()  # one for all: a batch keeps a brief row of every submission


@dataclass(frozen=True, slots=True)
class Result:
    """One exercise of one submission. `feedback` is what the learner would have read in the notebook."""

    exercise: str
    outcome: str
    max_points: int
    points: int = 0
    message_id: str = ""
    seed: int | None = None
    error: str = ""
    feedback: Feedback = NO_FEEDBACK


@dataclass(frozen=True, slots=True)
class Row:
    """One submission in the gradebook. `source` is its path inside the folder or zip.

    submitted: when it was handed in, with a time zone; None where nothing says so. course: the `Key.fingerprint` of
    the lesson that it was graded against. attempt: counts the different files that came under one path, from 1;
    0 until it is in the gradebook.
    """

    source: str
    student: str
    lesson: str
    sha256: str
    status: Status
    max_points: int = 0
    seconds: float = 0.0
    notes: tuple[Text, ...] = ()
    results: tuple[Result, ...] = ()
    submitted: datetime.datetime | None = None
    course: str = ""
    attempt: int = 0

    @property
    def points(self) -> int:
        """The sum over its exercises."""
        return sum(result.points for result in self.results)

    @property
    def brief(self) -> "Row":
        """This row without its feedback."""
        return replace(self, results=tuple(replace(result, feedback=NO_FEEDBACK) for result in self.results))


@dataclass(frozen=True)
class Graded:
    """What one call of `grade` did: the rows it wrote (their feedback is in the gradebook alone: a class of any size
    fits into memory), and how many submissions it left as they were."""

    rows: tuple[Row, ...]
    skipped: int
    seconds: float


def clean(text: str) -> str:
    """Text from outside as it may be stored and shown: no control characters, no half surrogates."""
    if text.isprintable():  # as nearly all is
        return text
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
