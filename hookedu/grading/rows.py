"""Data that the modules of the grader pass to each other."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from hookedu.exercises.feedback import Feedback
from hookedu.language import Text


class Status(StrEnum):
    """How a submission ended; the value is stored in the gradebook."""

    GRADED = "graded"
    NOT_ATTEMPTED = "not_attempted"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    UNREADABLE = "unreadable"
    NO_NOTEBOOK = "no_notebook"
    TAMPERED = "tampered"
    GRADER_ERROR = "grader_error"

    @property
    def fine(self) -> bool:
        """Whether the instructor does not need to look at the submission."""
        return self in (Status.GRADED, Status.NOT_ATTEMPTED)

    @property
    def stands(self) -> bool:
        """Whether the row stands until the submission changes; what the machine may have caused is tried again."""
        return self not in (Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.GRADER_ERROR)


# Outcome of an exercise without a verdict: the process ended before it, or its records are not trusted.
LOST = "lost"


class Unreadable(Exception):
    """A submission that cannot be read or graded; `says` is the reason for the instructor, `status` that of its row."""

    def __init__(self, says: Text, status: Status = Status.UNREADABLE):
        self.says, self.status = says, status
        super().__init__(str(says))


NO_FEEDBACK = Feedback()  # one shared instance: a batch keeps a brief row for every submission


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one exercise in one submission; `feedback` is what the learner would have read in the notebook."""

    exercise: str
    outcome: str
    max_points: int
    points: int = 0
    message_id: str = ""
    seed: int | None = None
    error: str = ""
    feedback: Feedback = NO_FEEDBACK


MOST_WRITTEN = 2**16  # characters of code kept of one submission


@dataclass(frozen=True)
class Written:
    """What a learner wrote or changed in one submission, kept to be compared with what others wrote.

    Attributes
    ----------
    cells : tuple of (str, tuple of str)
        Sources of the cells, in order, each with the ids of the exercises that it answers.
    left_out : int
        Number of cells that were too long to be kept.
    """

    cells: tuple[tuple[str, tuple[str, ...]], ...] = ()
    left_out: int = 0

    @classmethod
    def of(cls, cells: Iterable[tuple[str, tuple[str, ...]]]) -> "Written":
        """Return as many of the cells as MOST_WRITTEN allows."""
        kept, room, left_out = [], MOST_WRITTEN, 0
        for source, exercises in cells:
            if len(source) <= room:
                kept.append((source, exercises))
                room -= len(source)
            else:
                left_out += 1
        return cls(tuple(kept), left_out)


@dataclass(frozen=True, slots=True)
class Row:
    """One submission in the gradebook.

    Attributes
    ----------
    source : str
        Path of the notebook inside the folder or zip.
    student : str
        Name of the student's folder.
    lesson : str
        Lesson id such as "02"; "" if unknown.
    sha256 : str
        Digest of the notebook's bytes; "" if they could not be read.
    submitted : datetime or None
        Time of submission, with a time zone; None if unknown.
    course : str
        `LessonKey.fingerprint` of the lesson that the submission was graded against.
    attempt : int
        One-based number of this content among all contents submitted under the same path; 0 until the row is in the
        gradebook.
    reached : tuple of str
        What it reached for behind the scenes, see run/backstage.py; `notes` say it in words.
    written : Written or None
        What the learner wrote, on the way into the gradebook; None if the notebook could not be read, and in a row read
        from the gradebook (see `Gradebook.written`).
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
    reached: tuple[str, ...] = ()
    written: Written | None = None

    @property
    def points(self) -> int:
        """Sum of the points of all exercises."""
        return sum(result.points for result in self.results)

    @property
    def needs_a_look(self) -> bool:
        """Whether the instructor should look at it."""
        return bool(self.reached) or not self.status.fine

    @property
    def brief(self) -> "Row":
        """The same row without feedback and code."""
        results = tuple(replace(result, feedback=NO_FEEDBACK) for result in self.results)
        return replace(self, results=results, written=None)


@dataclass(frozen=True)
class Graded:
    """Result of one call of `grade`: the rows that it wrote, and how many submissions it left unchanged.

    The rows carry no feedback, which is kept in the gradebook only, so that a class of any size fits into memory.
    """

    rows: tuple[Row, ...]
    skipped: int
    seconds: float
