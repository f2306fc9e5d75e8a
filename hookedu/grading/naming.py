"""What the names of folders and files say: a student, a task, a section of a class, or a learning platform's own pattern."""

import os
import re
from collections.abc import Iterable

from hookedu.grading.found import Parts
from hookedu.grading.matching import lesson_by_name

_WORD = (
    "hw|homework|problem[ _-]?sets?|pset|ps|assignments?|exercises?|lessons?|weeks?|labs?|units?|modules?|parts?|tasks?|"
    "sessions?|days?|class(?:es)?|courses?|sections?|groups?|teams?|submissions?|submitted|exports?|downloads?|"
    "hand[ _-]?ins?|inbound|archives?|downloaded|students?|final|notebooks?|files?|work|drive|onedrive|"
    "作业|练习|课程|提交|学生|班级|第.{1,3}[课章周次组]"
)
# No name can take long: nothing that was matched is tried in another way (`(?>...)`, `*+`), and no name is longer.
_LONGEST = 255
_BETWEEN = r"[\s_.#()-]"
# "hw2", "Week 3", "Section B", "assignment_1_export": a name that no student has.
_NOBODY = re.compile(
    rf"(?>{_WORD})(?>{_BETWEEN}*+(?>\d++(?:[a-z](?![a-z]))?|{_WORD})|{_BETWEEN}++[a-z](?![a-z]))*+|[^班]{{1,9}}班",
    re.IGNORECASE,
)
# Of these, what may hand in work itself; and what may hold two students of the same name.
_GROUP = re.compile(r"(?:groups?|teams?|第.{1,3}组).*", re.IGNORECASE)
_SECTION = re.compile(rf"(?:sections?|班级|[^班]{{1,9}}班|{_GROUP.pattern}).*", re.IGNORECASE)
# What else stands in the name of a notebook and is no student's name.
_NO_PERSON = re.compile(
    rf"(?>{_WORD}|copy|of|my|untitled|solutions?|answers?|key|template|reference|draft|副本|答案|模板|未命名|\d{{1,3}}(?!\d))*+"
    r"|[a-z]",
    re.IGNORECASE,
)
# What stands before or after a student's name in that of a notebook: the task or the version, "hw2", "第二课", "Copy1".
_NUMBERED = (
    rf"(?>(?>{_WORD})[\s_-]*+\d++|第.{{1,3}}[课章周次组](?:作业|练习)?+|copy\d*+|副本\d*+|v\d++|final)"
)
_ARCHIVE = re.compile(r"\.(zip|rar|7z|tar|tgz|tar\.(gz|bz2|xz))$", re.IGNORECASE)
_NOTEBOOK = re.compile(r"(\.ipynb)?(\.(txt|json))?$", re.IGNORECASE)
_APART = r"[\s_.#(),-]"
_ASIDE = rf"(?:{_APART}|\(\d+\)|(?<![a-zA-Z0-9]){_NUMBERED}(?![a-zA-Z0-9]))"
_AT_ENDS = re.compile(rf"^{_ASIDE}+|{_ASIDE}+$", re.IGNORECASE)

# A name with underscores needs numbers of three digits, or it may be a date. The two of the user and the file, or
# "anon_" and five letters where the assignment is anonymous: lib/content_zipper.rb of canvas-lms.
_CANVAS_FILE = r"(?:\d+_.+|(?:text|link)\.html)"
CANVAS = re.compile(
    rf"(?P<name>[^_]+|\w+?(?=(?:_LATE)?_\d{{3,}}_(?:\d{{3,}}_|[tl])))(?:_LATE)?_(?P<id>\d+)_{_CANVAS_FILE}",
    re.IGNORECASE,
)
ANONYMOUS = re.compile(rf"(?:LATE_)?(?P<name>anon_[A-Za-z0-9]{{5}})_{_CANVAS_FILE}")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?")
BRIGHTSPACE = re.compile(r"(?P<id>\d+)-\d+ - (?P<name>.+) - .*\d{4} \d{3,4}(?: [AP]M)?")
GRADESCOPE = re.compile(r"submission_\d+")
BLACKBOARD = re.compile(r"(?P<head>.+?)_attempt_\d{4}(?:-\d\d){5}(?:[_.].*)?")
EXCHANGE = re.compile(r"(?P<name>[^+]+)\+[^+]+\+\d{4}-\d\d-\d\d [^+]+(?:\+.*)?")
NUMBERED = {CANVAS: "Canvas", MOODLE: "Moodle", BRIGHTSPACE: "Brightspace"}  # know a student by a number


def bare(name: str) -> str:
    """Return the name of a folder or of an archive in its place, without the archive's suffix."""
    return _ARCHIVE.sub("", name)


def is_nobody(folder: str) -> bool:
    """Check whether a folder's name is that of a task, a lesson or a section, not of a student."""
    name = bare(folder[:_LONGEST]).strip()
    lesson = lesson_by_name(name)
    return bool(_NOBODY.fullmatch(name)) or (lesson is not None and (name.isdigit() or lesson.file in name))


def is_group(folder: str) -> bool:
    """Check whether a folder's name is that of several who hand in together."""
    return bool(_GROUP.fullmatch(folder.strip()))


def is_section(folder: str) -> bool:
    """Check whether a folder's name is that of a part of the class, which may know a student by a name used elsewhere."""
    return bool(_SECTION.fullmatch(folder.strip()))


def is_initial(folder: str, people: Iterable[str]) -> bool:
    """Check whether a folder is named by the first letter of all these people, "A" or "A-F"."""
    letters = re.fullmatch(r"([^\W\d_])(?:\s*[-–]\s*([^\W\d_]))?", folder.casefold())
    first, last = (letters[1], letters[2] or letters[1]) if letters else ("b", "a")
    return all(first <= person[:1].casefold() <= last for person in people)


def person(file: str) -> str:
    """Return the student after whom a notebook is named, "" if it is named after its lesson or after nobody."""
    name = _NOTEBOOK.sub("", file[-_LONGEST:])
    lesson = lesson_by_name(name)
    if lesson and lesson.file.lower() in name.lower():
        at = name.lower().index(lesson.file.lower())
        before, after = name[:at], name[at + len(lesson.file) :]
        name = before if re.search(r"[^\W\d_]|\d{4}", before) else after
    else:
        name = re.sub(r"^\d\d(?!\d)|(?<!\d)[\s_-]\d\d$", "", name)  # the lesson's number
    name = _AT_ENDS.sub("", name)
    return "" if all(_NO_PERSON.fullmatch(word) for word in re.split(rf"{_APART}+", name)) else name


def of_platform(parts: Parts) -> re.Match[str] | None:
    """Return the match of the first part with what a learning platform names a student's file or folder."""
    first = bare(parts[0][:_LONGEST])
    for pattern in (MOODLE, BRIGHTSPACE, GRADESCOPE, BLACKBOARD, EXCHANGE):
        if found := pattern.fullmatch(first):
            return found
    if len(parts) > 1 and first == parts[0][:_LONGEST]:
        return None  # Canvas has no folders, only archives
    return ANONYMOUS.fullmatch(first) or CANVAS.fullmatch(first)


def without_task(heads: set[str]) -> dict[str, str]:
    """Return the students in the beginnings of Blackboard's file names, "TASK_STUDENT": without what all have in common."""
    shared = os.path.commonprefix([*heads]) if len(heads) > 1 else next(iter(heads), "")  # noqa: RUF071
    cut = shared.rfind("_") + 1
    return {head: head[cut:] for head in heads}
