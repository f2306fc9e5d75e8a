"""Find out whose each file is: the layouts in which classes and learning platforms hand over submissions.

    STUDENT/LESSON.ipynb                              the plain layout; STUDENT may be a zip
    submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb       nbgrader; the course folder around it is skipped
    NAME_12_34_FILE.ipynb                             Canvas, "Download submissions": NAME, user id, submission id
    anon_ab1Cd_34_FILE.ipynb                          Canvas, of an anonymous assignment
    NAME_12_assignsubmission_file/FILE.ipynb          Moodle, "Download all submissions", as folders or as files
    TASK_LOGIN_attempt_2026-11-01-10-11-12_FILE.ipynb Blackboard, "Assignment file download"
    12-34 - NAME - Nov 1, 2026 1011 AM/FILE.ipynb     Brightspace: user id, NAME, time
    Submitted files/STUDENT/TASK/Version 2/FILE.ipynb Teams, the library "Student Work"
    assignment_1_export/submission_2/FILE.ipynb       Gradescope, with submission_metadata.yml
    STUDENT+ASSIGNMENT+TIME+RANDOM/NOTEBOOK.ipynb     nbgrader's exchange, the folder `inbound`
    TASK/STUDENT.ipynb                                no folders for students: several notebooks with people's names
    Classroom/COURSE/TASK/STUDENT - LESSON.ipynb      Google Classroom's folder in Drive, as one downloads it

Folders around all students ("hw2", "submissions", the name of the zip) are skipped: they are recognised by their names,
or by holding nothing but several other folders.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hookedu.grading import naming
from hookedu.grading.cleaning import clean_name, one_form
from hookedu.grading.found import FileKind, Found, Parts
from hookedu.grading.naming import bare, is_nobody, of_platform
from hookedu.grading.rows import Unreadable

_MAX_AROUND = 5  # folders around all students
# nbgrader's and Teams' folder of what was handed in, and what lies beside it.
_HANDED_IN = ("submitted", "Submitted files", "已提交的文件")
_BESIDE = frozenset(
    ("source", "release", "autograded", "feedback", "downloaded", "Working files", "工作文件")
)
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
        beside = [f for f in inside if f.parts[level] not in around and f.parts[level] not in _BESIDE]
        out += [Owned("", _source(f, kept), f, level) for f in beside]
        inside, level = below, level + 1
        if len(around) == 1:
            kept = level  # one folder around everything says nothing; of several, each is part of the path
    names = _people(inside, level) | _by_files(inside, level)
    students = [one_form(_student(file, level, names)) for file in inside]
    students = _told_apart(students, inside, level)
    return out + [
        Owned(student, _source(file, kept), file, level)
        for student, file in zip(students, inside, strict=True)
    ]


def _source(file: Found, kept: int) -> str:
    return clean_name("/".join(file.parts[kept:]).strip("/"))


def _around(files: Sequence[Found], level: int, stem: str) -> set[str]:
    """Return the folders at a level that are around the students' folders; none if they are the students' own."""
    paths = [file.parts[level:] for file in files]
    tops = {parts[0] for parts in paths if len(parts) > 1}
    for name in _HANDED_IN:
        if _is_handed_in(name, files, level):
            return {name}
    if not tops or any(map(of_platform, paths)):
        return set()
    if len(tops) == 1 and any(map(_leads_to_platform, paths)):
        return tops
    if {parts[0] for parts in paths if len(parts) > 2} != tops:
        return set()
    if len(tops) == 1 and _leads_to_people(files, level + 1):
        return tops
    loose = {f.parts[level] for f in files if _right_below([f], level)}
    if loose and not (
        all(map(is_nobody, tops)) and all(_several_people(f, level + 1) for f in _of(loose, files, level))
    ):
        return set()
    if all(top == stem or is_nobody(top) for top in tops):
        people = any(part and not is_nobody(part) for parts in paths for part in parts[1:-1])
        return tops if people or tops == {stem} else set()
    if all(naming.is_initial(parts[0], [parts[1]]) for parts in paths if len(parts) > 2):
        return tops
    return tops if len(tops) == 1 and _several_people(files, level + 1) else set()


def _is_handed_in(name: str, files: Sequence[Found], level: int) -> bool:
    """Check whether a folder of this name is nbgrader's or Teams': there each notebook lies in a student's and a task's.

    A folder that is less deep may be that of one student, if others have folders with notebooks beside it.
    """
    depth = max((len(f.parts) - level for f in files if f.parts[level] == name), default=0)
    alone = all(
        f.parts[level] == name or f.parts[level] in _BESIDE or len(f.parts) == level + 1
        for f in files
        if f.kind is FileKind.NOTEBOOK
    )
    return depth > 3 or (depth == 3 and alone)


def _leads_to_platform(parts: Parts) -> bool:
    """Check whether what a learning platform names lies in a folder, or below it in folders of nobody's."""
    below = range(1, len(parts))
    return any(of_platform(parts[n:]) for n in below if all(map(is_nobody, parts[1:n])))


def _of(folders: set[str], files: Sequence[Found], level: int) -> list[list[Found]]:
    """Return the files of each of these folders at a level."""
    inside: dict[str, list[Found]] = {folder: [] for folder in folders}
    for file in files:
        if file.parts[level] in folders:
            inside[file.parts[level]].append(file)
    return [*inside.values()]


def _right_below(files: Sequence[Found], level: int) -> bool:
    """Check whether a notebook lies right in one of the folders at a level."""
    return any(len(f.parts) == level + 2 and f.parts[-1] and f.kind is FileKind.NOTEBOOK for f in files)


def _several_people(files: Sequence[Found], level: int) -> bool:
    """Check whether the folders from a level on branch first into several that look like those of students."""
    while True:
        inner = {file.parts[level] for file in files if len(file.parts) > level + 1}
        if len(inner) != 1 or _right_below(files, level):
            break
        level += 1
    holding = {f.parts[level] for f in files if len(f.parts) > level + 1 and f.kind is FileKind.NOTEBOOK}
    return len(inner) > 1 and 2 * len(holding) >= len(inner) and not any(map(is_nobody, inner))


def _leads_to_people(files: Sequence[Found], level: int) -> bool:
    """Check whether the only folders from a level on lead to one of a task, with notebooks named after their students."""
    top = level
    while all(len(f.parts) > level + 1 for f in files) and len({f.parts[level] for f in files}) == 1:
        level += 1
    task = files[0].parts[level - 1]
    return level > top and is_nobody(task) and not naming.is_group(task) and bool(_by_files(files, level))


def _student(file: Found, level: int, names: dict[str, str]) -> str:
    """Return the name of the student that a file belongs to, or "" if it lies beside the students' folders."""
    parts = file.parts[level:]
    if (path := "/".join(parts)) in names:
        return clean_name(names[path])
    first = bare(parts[0])
    if found := of_platform(parts):
        if platform := naming.NUMBERED.get(found.re):
            return f"{clean_name(found['name'])} ({platform} {found['id']})"
        named = found.re in (naming.EXCHANGE, naming.ANONYMOUS)
        return clean_name(found["name"] if named else names.get(first, first))
    # A file is a student's if it stands for a folder: an archive that could not be opened.
    return clean_name(first) if first != parts[0] or len(parts) > 1 else ""


def _told_apart(students: list[str], files: Sequence[Found], level: int) -> list[str]:
    """Return the students, those of one name in several sections of the class with the section."""
    sections = [" ".join(filter(naming.is_section, f.parts[:level])) for f in files]
    of: dict[str, set[str]] = {}
    for student, section in zip(students, sections, strict=True):
        of.setdefault(student, set()).add(section)
    return [
        f"{student} ({clean_name(section)})" if student and section and len(of[student]) > 1 else student
        for student, section in zip(students, sections, strict=True)
    ]


def _by_files(files: Sequence[Found], level: int) -> dict[str, str]:
    """Return the students of notebooks that lie together and are named each after its student, by their paths.

    So where students have no folders: in the folders of tasks, or where nothing else is. One folder with the name of a
    student or a group shows that folders are students': then what lies in another one is not somebody else's.
    """
    folders: dict[Parts, dict[str, str]] = {}
    only = all(len(file.parts) == level + 1 for file in files)
    tops = {file.parts[level] for file in files if len(file.parts) > level + 1}
    tasks = all(is_nobody(top) and not naming.is_group(top) for top in tops)
    for file in files:
        parts = file.parts[level:]
        in_task = len(parts) == 2 and tasks
        if file.kind is FileKind.NOTEBOOK and parts[-1] and (in_task or only) and not of_platform(parts):
            folders.setdefault(parts[:-1], {})["/".join(parts)] = naming.person(parts[-1])
    named = [folder for folder in folders.values() if any(folder.values())]
    several = len({student for folder in named for student in folder.values()} - {""}) > 1
    return {path: student for folder in named if several for path, student in folder.items()}


def _people(files: Sequence[Found], level: int) -> dict[str, str]:
    """Return the students of Blackboard's files and of Gradescope's folders: of all who submitted one, with addresses."""
    tops = {bare(file.parts[level]) for file in files}
    heads = {top: found["head"] for top in tops if (found := naming.BLACKBOARD.fullmatch(top))}
    if heads:
        students = naming.without_task({*heads.values()})
        return {top: students[head] for top, head in heads.items()}
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
