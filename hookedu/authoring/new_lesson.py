"""`hookedu new-lesson 20 my_topic`: create a lesson that builds, passes all tests and can be graded.

The files are rendered from templates/lesson/. All code that lists lessons finds the new one through
course.yml.
"""

import re
from pathlib import Path

import jinja2

from hookedu.catalog import CourseError
from hookedu.language import Text

# Path of each file of a lesson -> its template.
_FILES = {
    "course/{file}.py": "lesson.py.jinja",
    "course/{file}.yml": "words.yml.jinja",
    "course/{file}.code.yml": "code_words.yml.jinja",
    "hookedu/exercises/probes/lesson_{id}/__init__.py": "package.py.jinja",
    "hookedu/exercises/probes/lesson_{id}/keep_output.py": "probe.py.jinja",
    "hookedu/exercises/checks/lesson_{id}/__init__.py": "package.py.jinja",
    "hookedu/exercises/checks/lesson_{id}/keep_output.py": "checks.py.jinja",
    "tests/answers/lesson_{id}/keep_output.py": "answers.py.jinja",
    "tests/figures/lesson_{id}.py": "figures.py.jinja",
    "tests/claims/{id}.yml": "claims.yml.jinja",
}
_LIST = "course/course.yml"
_ENTRY = re.compile(r"^  - file: (\d\d)_", re.MULTILINE)

_NO_CLONE = Text(
    zh="`{root}` 不是课程仓库的副本（缺少 `{missing}`）：先 `git clone` 课程，在那里运行 `hookedu new-lesson`。",
    en="`{root}` is no clone of the course (`{missing}` is missing): `git clone` it and run `hookedu new-lesson` there.",
)
_BAD_NUMBER = Text(
    zh="课的编号在 0 和 99 之间，不能是 {number}。",
    en="A lesson's number lies between 0 and 99; {number} does not.",
)
_BAD_NAME = Text(
    zh="课的名字 `{name}` 会成为文件名：请用小写英文字母、数字和下划线，以字母开头，最多 60 个，例如 `my_topic`。",
    en="The lesson's name `{name}` becomes a file's name: write at most 60 lower-case English letters, digits and "
    "underscores, a letter first, such as `my_topic`.",
)
_TAKEN = Text(
    zh="编号 {id} 已经有了：`{path}`。请换一个编号；还没用过的最小编号是 {free}。",
    en="Number {id} is taken: `{path}`. Choose another; the lowest free one is {free}.",
)


def new_lesson(root: Path, number: int, name: str) -> list[Path]:
    """Write the files of a new lesson into a clone of the course.

    The entry in course.yml is written last.

    Parameters
    ----------
    root : Path
        The root of the clone.
    number : int
        The number of the lesson, from 0 to 99.
    name : str
        The name of the lesson in its file name, such as "my_topic".

    Returns
    -------
    list of Path
        The files written or changed.

    Raises
    ------
    CourseError
        If the number is taken or out of range, if the name is not a valid name, or if `root` is not a clone
        of the course. Nothing is written then.
    """
    for folder in (
        "course",
        "hookedu/exercises/probes",
        "hookedu/exercises/checks",
        "tests/answers",
        "tests/figures",
        "tests/claims",
    ):
        if not (root / folder).is_dir():
            raise CourseError(_NO_CLONE.format(root=root, missing=folder))
    if not 0 <= number <= 99:
        raise CourseError(_BAD_NUMBER.format(number=number))
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name):
        raise CourseError(_BAD_NAME.format(name=name))
    id_, listed = f"{number:02}", (root / _LIST).read_text(encoding="utf-8")
    _refuse_taken(root, id_, listed)

    values = {"id": id_, "n": number, "file": f"{id_}_{name}", "title": name.replace("_", " ").capitalize()}
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("hookedu.authoring", "templates/lesson"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    made = {root / path.format(**values): template for path, template in _FILES.items()}
    for path, template in made.items():
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(templates.get_template(template).render(values), encoding="utf-8")
    # Inserted as text before the first lesson with a higher number, which keeps comments and order.
    later = next((m.start() for m in _ENTRY.finditer(listed) if m[1] > id_), len(listed))
    entry = templates.get_template("course.yml.jinja").render(values)
    (root / _LIST).write_text(listed[:later] + entry + listed[later:], encoding="utf-8")
    return [*made, root / _LIST]


def _refuse_taken(root: Path, id_: str, listed: str) -> None:
    patterns = (f"course/{id_}_*.*", f"hookedu/exercises/*/lesson_{id_}", f"tests/*/lesson_{id_}*")
    there = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    numbers = set(_ENTRY.findall(listed))
    if there or id_ in numbers:
        path = there[0].relative_to(root) if there else _LIST
        free = next((f"{n:02}" for n in range(100) if f"{n:02}" not in numbers), "–")
        raise CourseError(_TAKEN.format(id=id_, path=path, free=free))
