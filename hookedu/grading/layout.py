"""Find out whose each file is: the layouts in which classes and learning platforms hand over submissions.

    STUDENT/LESSON.ipynb                              the plain layout; STUDENT may be a zip
    submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb       nbgrader; the course folder around it is skipped
    NAME_12_34_FILE.ipynb                             Canvas, "Download submissions": NAME, user id, submission id
    NAME_12_assignsubmission_file/FILE.ipynb          Moodle, "Download all submissions", as folders or as files
    assignment_1_export/submission_2/FILE.ipynb       Gradescope, with submission_metadata.yml
    STUDENT+ASSIGNMENT+TIME+RANDOM/NOTEBOOK.ipynb     nbgrader's exchange, the folder `inbound`

Folders around all students ("hw2", "submissions", the name of the zip) are skipped: they are recognised by their names,
or by holding nothing but several other folders.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hookedu.grading.files import Found, Kind, Parts
from hookedu.grading.matching import lesson_by_name
from hookedu.grading.rows import Unreadable, clean_name

_MAX_AROUND = 5  # folders around all students
_WORD = (
    "hw|homework|ps|pset|problem[ _-]?sets?|assignments?|exercises?|lessons?|weeks?|labs?|units?|modules?|parts?|tasks?|"
    "sessions?|days?|class(?:es)?|courses?|sections?|groups?|submissions?|submitted|exports?|downloads?|hand[ _-]?ins?|"
    "inbound|students?|final|notebooks?|files?|作业|练习|课程|提交|学生|班级|第.{1,3}[课章周次]"
)
# "hw2", "Week 3", "assignment_1_export": a name that no student has.
_NOBODY = re.compile(rf"(?:{_WORD})(?:[\s_.#()-]*(?:\d+[a-z]?|{_WORD}))*", re.IGNORECASE)
_CANVAS = re.compile(r"([^_]+)(?:_LATE)?_(\d+)_(\d+)_(.+)", re.IGNORECASE)
_MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission_(?:file|onlinetext)(?:_(.*))?")
_GRADESCOPE = re.compile(r"submission_\d+")
EXCHANGE = re.compile(r"([^+]+)\+[^+]+\+\d{4}-\d\d-\d\d [^+]+(?:\+.*)?")
_ARCHIVE = re.compile(r"\.(zip|rar|7z|tar|tgz|tar\.(gz|bz2|xz))$", re.IGNORECASE)
_NBGRADERS = frozenset(("source", "release", "autograded", "feedback", "downloaded"))
_METADATA = "submission_metadata.yml"
_MAX_METADATA = 16 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Owned:
    """A file and its student.

    Attributes
    ----------
    student : str
        Name of the student, the same for all of the student's files; "" for a file outside every student's folder.
    source : str
        Path of the file without the folders around all students.
    found : Found
        The file.
    level : int
        Number of parts of its path before the student's own.
    """

    student: str
    source: str
    found: Found
    level: int

    @property
    def folder(self) -> str:
        """Path of the student's own folder, as in `source`."""
        path = self.source.split("/")
        skipped = len([part for part in self.found.parts if part]) - len(path)
        return "/".join(path[: self.level + 1 - skipped])


def owned(files: Iterable[Found], stem: str) -> list[Owned]:
    """Return the files of a class with their students.

    Parameters
    ----------
    files : iterable of Found
        Everything found.
    stem : str
        Name of the folder or zip, without its suffix.
    """
    out, inside = [], []
    for file in sorted(files, key=lambda file: file.parts):
        if file.parts[0]:
            inside.append(file)
        else:  # a path that is not allowed stands for itself
            out.append(Owned(clean_name(file.parts[1]), clean_name(file.parts[1].strip("/")), file, 0))
    level = kept = 0
    while level < _MAX_AROUND and (around := _around(inside, level, stem)):
        below = [f for f in inside if f.parts[level] in around and len(f.parts) > level + 1]
        beside = [f for f in inside if f.parts[level] not in around and f.parts[level] not in _NBGRADERS]
        out += [Owned("", _source(f, kept), f, level) for f in beside]
        inside, level = below, level + 1
        if len(around) == 1:
            kept = level  # one folder around everything says nothing; of several, each is part of the path
    people = _people(inside, level)
    return out + [Owned(_student(f, level, people), _source(f, kept), f, level) for f in inside]


def _source(file: Found, kept: int) -> str:
    return clean_name("/".join(file.parts[kept:]).strip("/"))


def _around(files: Sequence[Found], level: int, stem: str) -> set[str]:
    """Return the folders at a level that are around the students' folders; none if they are the students' own."""
    paths = [file.parts[level:] for file in files]
    tops = {parts[0] for parts in paths if len(parts) > 1}
    if "submitted" in tops and any(parts[0] == "submitted" and len(parts) > 2 for parts in paths):
        return {"submitted"}
    if not tops or any(map(_of_platform, paths)):
        return set()
    if len(tops) == 1 and any(_of_platform(parts[1:]) for parts in paths if len(parts) > 1):
        return tops
    if {parts[0] for parts in paths if len(parts) > 2} != tops or _right_below(files, level):
        return set()
    if all(top == stem or _nobody(top) for top in tops):
        people = any(part and not _nobody(part) for parts in paths for part in parts[1:-1])
        return tops if people or tops == {stem} else set()
    return tops if len(tops) == 1 and _several_people(files, level + 1) else set()


def _right_below(files: Sequence[Found], level: int) -> bool:
    """Check whether a notebook lies right in one of the folders at a level."""
    return any(len(f.parts) == level + 2 and f.parts[-1] and f.kind is Kind.NOTEBOOK for f in files)


def _several_people(files: Sequence[Found], level: int) -> bool:
    """Check whether the folders from a level on branch first into several that look like those of students."""
    while True:
        inner = {file.parts[level] for file in files if len(file.parts) > level + 1}
        if len(inner) != 1 or _right_below(files, level):
            break
        level += 1
    holding = {f.parts[level] for f in files if len(f.parts) > level + 1 and f.kind is Kind.NOTEBOOK}
    return len(inner) > 1 and 2 * len(holding) >= len(inner) and not any(map(_nobody, inner))


def _nobody(folder: str) -> bool:
    """Check whether a folder's name is that of a task or a lesson, not of a student."""
    name = _bare(folder).strip()
    lesson = lesson_by_name(name)
    return bool(_NOBODY.fullmatch(name)) or (lesson is not None and (name.isdigit() or lesson.file in name))


def _bare(name: str) -> str:
    return _ARCHIVE.sub("", name)


def _of_platform(parts: Parts) -> re.Match[str] | None:
    """Return the match of the first part with what a learning platform names a student's file or folder."""
    first = _bare(parts[0])
    if found := _MOODLE.fullmatch(first) or _GRADESCOPE.fullmatch(first) or EXCHANGE.fullmatch(first):
        return found
    return _CANVAS.fullmatch(first) if len(parts) == 1 or first != parts[0] else None


def _student(file: Found, level: int, people: dict[str, str]) -> str:
    """Return the name of the student that a file belongs to, or "" if it lies beside the students' folders."""
    parts = file.parts[level:]
    first = _bare(parts[0])
    if found := _of_platform(parts):
        if found.re is _GRADESCOPE:
            return clean_name(people.get(first, first))
        if found.re is EXCHANGE:
            return clean_name(found[1])
        platform = "Moodle" if found.re is _MOODLE else "Canvas"
        return f"{clean_name(found[1])} ({platform} {found[2]})"
    # A file is a student's if it stands for a folder: an archive that could not be opened.
    return clean_name(first) if first != parts[0] or len(parts) > 1 else ""


def _people(files: Sequence[Found], level: int) -> dict[str, str]:
    """Return the name of each of Gradescope's folders: of all who submitted it, with e-mail addresses."""
    for file in files:
        if len(file.parts) == level + 1 and file.parts[level] == _METADATA:
            try:
                data = file.read()
                found = yaml.safe_load(data) if len(data) <= _MAX_METADATA else {}
            except (Unreadable, yaml.YAMLError, ValueError, RecursionError):
                continue
            submissions = found.items() if isinstance(found, dict) else ()
            return {
                str(folder): " & ".join(_submitters(facts)) or str(folder) for folder, facts in submissions
            }
    return {}


def _submitters(facts: Any) -> list[str]:
    people = facts.get(":submitters") if isinstance(facts, dict) else None
    names = []
    for person in people if isinstance(people, list) else []:
        said = [person.get(key) for key in (":name", ":email", ":sid")] if isinstance(person, dict) else []
        name, *ids = [str(value) if value else "" for value in said] or [""]
        id = next(filter(None, ids), "")
        names.append(f"{name} ({id})" if name and id else name or id)
    return [name for name in names if name]
