"""List the submissions in a folder, or in a zip of such a folder; `layout` says in which layouts.

Everything that looks like a notebook becomes a `Submission`, even if reading it is going to fail, and so does a student
who handed in no notebook at all: a row with a reason is better than a missing row.

The time of submission comes from nbgrader's `timestamp.txt` beside the notebook, but only in nbgrader's layout: there
`nbgrader collect` and `zip_collect` wrote it, elsewhere it may be the student's own. Otherwise it is the file's
modification time; a zip stores that without a time zone, and it is taken as local time. Of a zip that a student handed
in, the time of the zip counts: the times inside it are the student's own.
"""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hookedu.catalog import CourseError
from hookedu.grading.files import find
from hookedu.grading.found import FileKind, Found, refuse
from hookedu.grading.layout import Owned, owned
from hookedu.grading.naming import EXCHANGE
from hookedu.grading.rows import Status, Unreadable
from hookedu.language import Text

MAX_NOTEBOOKS = 200  # per student
_NAMED = 5  # files named in a reason

_LAYOUT = Text(
    zh="应当是 `学生/课程.ipynb`，或 nbgrader 的 `submitted/学生/作业/笔记本.ipynb`",
    en="expected `STUDENT/LESSON.ipynb` or nbgrader's `submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb`",
)
_SAME = Text(
    zh="`--out` 就是提交的文件夹 `{path}` 本身：写进去的反馈会被当成学生交的。请另选一个，例如 `--out {path}/grades`；"
    "里面如果已经有 `grades.db`，把它移过去，成绩就还在。",
    en="`--out` is the folder of the submissions, `{path}`, itself: the feedback written into it would be taken for "
    "students'. Choose another, such as `--out {path}/grades`; a `grades.db` that lies here goes on there once you have "
    "moved it.",
)
_NOTHING = Text(zh="没有交任何文件", en="nothing was handed in")
_NO_NOTEBOOK = Text(zh="没有笔记本，只有：{names}", en="no notebook, only: {names}")
_TOO_MANY = Text(
    zh="这个学生交了 {n} 个笔记本；前 {of} 个之后的没有评",
    en="this student handed in {n} notebooks; those after the first {of} were not graded",
)


@dataclass(frozen=True, slots=True)
class Submission:
    """One notebook of one student, not yet read.

    Attributes
    ----------
    source : str
        Path inside the folder or zip.
    student : str
        Name of the student.
    read : callable
        Returns the notebook's bytes; raises Unreadable if that is not possible.
    submitted : callable
        Returns the time of submission, with a time zone, or None if unknown.
    """

    source: str
    student: str
    read: Callable[[], bytes]
    submitted: Callable[[], datetime | None] = lambda: None

    @property
    def stem(self) -> str:
        """File name without its suffixes."""
        return re.sub(r"(?i)(\.ipynb)?(\.(txt|json))?$", "", self.source.rsplit("/", 1)[-1])


class NothingToGrade(CourseError):
    """A folder or zip without any notebook."""


class Collected(NamedTuple):
    """The submissions, sorted by path, and the paths of files that are none.

    Attributes
    ----------
    submissions : list of Submission
        One per notebook, or per student without any.
    outside : list of str
        Notebooks outside any student's folder.
    aside : list of str
        Other files of students who also handed in a notebook.
    """

    submissions: list[Submission]
    outside: list[str]
    aside: list[str]


def collect(folder: Path, without: Path | None = None) -> Collected:
    """Return the submissions in a folder or zip, but for what lies in the folder `without`, such as that of the gradebook.

    Raises
    ------
    NothingToGrade
        If it contains no notebook.
    CourseError
        If the path does not exist, is neither a folder nor a readable zip, or holds too many files; or if it is `without`.
    """
    if without and os.path.realpath(folder) == os.path.realpath(without):
        raise CourseError(_SAME.format(path=folder))
    stem = folder.stem if folder.suffix.lower() == ".zip" else folder.name
    files = owned(find(folder, without), stem)
    nbgrader = stem == "submitted" or any("submitted" in f.found.parts[: f.level] for f in files)
    stamps = {
        file.found.parts[:-1]: file.found
        for file in files
        if file.found.parts[-1] == "timestamp.txt" and not file.found.zips and _is_nbgraders(file, nbgrader)
    }
    by_student: dict[str, list[Owned]] = {}
    for file in files:
        if file.student and file.found.parts[-1] != "timestamp.txt":
            by_student.setdefault(file.student, []).append(file)
    submissions, aside = [], []
    for student, theirs in by_student.items():
        handed_in = [f for f in theirs if f.found.kind in (FileKind.NOTEBOOK, FileKind.BROKEN)]
        for file in handed_in[:MAX_NOTEBOOKS]:
            stamp = next(
                (stamps[at] for n in (2, 1) if (at := file.found.parts[: file.level + n]) in stamps), None
            )
            submissions.append(
                Submission(
                    file.source, student, file.found.read, partial(_time, file.found, file.level, stamp)
                )
            )
        others = [f.source for f in theirs if f.found.kind is FileKind.OTHER]
        if len(handed_in) > MAX_NOTEBOOKS:
            says = _TOO_MANY.format(n=len(handed_in), of=MAX_NOTEBOOKS)
            submissions.append(Submission(handed_in[MAX_NOTEBOOKS].source, student, partial(refuse, says)))
        elif handed_in:
            aside += others
        else:
            read = partial(refuse, _found_instead(others), Status.NO_NOTEBOOK)
            submissions.append(Submission(theirs[0].folder, student, read))
    if not any(f.found.kind in (FileKind.NOTEBOOK, FileKind.BROKEN) for f in files if f.student):
        raise NothingToGrade(
            Text(
                zh="`{path}` 里没有可以评分的笔记本：{layout}。",
                en="There are no notebooks to grade in `{path}`: {layout}.",
            ).format(path=folder, layout=_LAYOUT)
        )
    outside = [f.source for f in files if not f.student and f.found.kind is FileKind.NOTEBOOK]
    return Collected(_told_apart(sorted(submissions, key=lambda s: s.source)), outside, aside)


def _is_nbgraders(file: Owned, nbgrader: bool) -> bool:
    """Check whether a timestamp.txt lies where nbgrader writes it; in any other folder it is the student's own."""
    inside = file.found.parts[file.level :]
    return (nbgrader and len(inside) == 3) or (len(inside) == 2 and bool(EXCHANGE.fullmatch(inside[0])))


def _told_apart(submissions: list[Submission]) -> list[Submission]:
    """Return the submissions, each with a path of its own: a zip may hold two files of one path."""
    taken = {submission.source for submission in submissions}
    copies = Counter[str]()
    for n, submission in enumerate(submissions):
        copies[source := submission.source] += 1
        if copies[source] > 1:
            while (name := f"{source} ({copies[source]})") in taken:
                copies[source] += 1
            taken.add(name)
            submissions[n] = replace(submission, source=name)
    return submissions


def _found_instead(names: list[str]) -> Text:
    more = "" if len(names) <= _NAMED else " …"
    said = ", ".join(f"`{name}`" for name in names[:_NAMED]) + more
    return _NO_NOTEBOOK.format(names=said) if names else _NOTHING


def _time(found: Found, level: int, stamp: Found | None) -> datetime | None:
    if stamp:
        with contextlib.suppress(Unreadable):
            if time := _timestamp(stamp.read()[:100]):
                return time
    return next((time for depth, time in found.zips if depth > level), found.time)()


def _timestamp(text: bytes) -> datetime | None:
    """Parse nbgrader's format: "2015-02-02 14:58:23.948203 America/Los_Angeles", or with UTC, or without a zone."""
    day, clock, zone = (*text.decode("ascii", "replace").split(), "", "", "")[:3]
    try:
        local = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=ZoneInfo(zone or "UTC"))
        return local.astimezone(UTC)
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None
