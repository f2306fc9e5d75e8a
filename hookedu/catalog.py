"""The files of the course and its lessons as course.yml describes them."""

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hookedu import yaml_files
from hookedu.language import CourseError, Text

_CLONE = Path(__file__).resolve().parent.parent
IN_CLONE = (_CLONE / "course" / "course.yml").exists()
# The folder with the course, lessons and solutions: the clone that contains hookedu, else the wheel's own
# copy.
ROOT = _CLONE if IN_CLONE else Path(__file__).resolve().with_name("_course")


@dataclass(frozen=True)
class Opening:
    """A picture that makes people want to know, above the goals of a lesson."""

    picture: str  # name of a file in course/images
    alt: Text  # what is seen
    caption: Text


@dataclass(frozen=True)
class Lesson:
    """One lesson as course.yml describes it."""

    file: str  # "02_tensor_hooks"
    title: Text
    minutes: int
    difficulty: int  # 1 to 5
    goals: tuple[Text, ...]
    needs: Text  # prerequisites
    about: Text  # one line for the course map
    after: tuple[str, ...]  # ids of the lessons that directly lead to it
    opening: Opening | None = None
    root: Path = ROOT  # the copy of the course to which it belongs

    @property
    def id(self) -> str:
        """Number of the lesson: "02"."""
        return self.file[:2]

    @property
    def source(self) -> Path:
        """The hand-written source."""
        return self.root / "course" / f"{self.file}.py"

    @property
    def notebook(self) -> Path:
        """The learner's notebook, without answers and outputs."""
        return self.root / "lessons" / f"{self.file}.ipynb"

    @property
    def images(self) -> Path:
        """The folder of the pictures that prose cells show."""
        return self.root / "course" / "images"

    @property
    def solution(self) -> Path:
        """The same notebook with answers and outputs."""
        return self.root / "solutions" / f"{self.file}.ipynb"


_NO_LESSONS = Text(
    zh="要有 `lessons`，里面一课一项。", en="it needs `lessons`, with an item for each lesson."
)
_LESSON = Text(
    zh="这一课缺少 {what}，或者它写得不对；照别的课的样子写。",
    en="this lesson lacks {what}, or has something else in its place; write it as other lessons have it.",
)


def _text(node: dict[str, Any]) -> Text:
    return Text(zh=node["zh"], en=node["en"])


def _opening(node: dict[str, Any]) -> Opening:
    return Opening(node["picture"], _text(node["alt"]), _text(node["caption"]))


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return every lesson of the course, in the order of course.yml; raise CourseError without that file."""
    path = ROOT / "course" / "course.yml"
    if not path.exists():
        raise CourseError(
            Text(
                zh="找不到课程文件 `{path}`。请重新安装 hookedu，或者把课程仓库重新克隆一份。",
                en="The course file `{path}` is missing. Install hookedu again, or clone the course anew.",
            ).format(path=path)
        )
    nodes = yaml_files.load(path).get("lessons")
    if not isinstance(nodes, list):
        raise yaml_files.YamlError(path, yaml_files.line_of(path, "lessons"), _NO_LESSONS)
    return tuple(_lesson(path, n, node) for n, node in enumerate(nodes))


def _lesson(path: Path, n: int, node: Any) -> Lesson:
    try:
        return Lesson(
            file=node["file"],
            title=_text(node["title"]),
            minutes=node["minutes"],
            difficulty=node["difficulty"],
            goals=tuple(map(_text, node["goals"])),
            needs=_text(node["needs"]),
            about=_text(node.get("about", node["goals"][0])),
            after=tuple(node.get("after", ())),
            opening=_opening(node["opening"]) if "opening" in node else None,
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"`{error.args[0]}`" if isinstance(error, KeyError) else str(error)
        line = yaml_files.line_of(path, "lessons", n)
        raise yaml_files.YamlError(path, line, _LESSON.format(what=what)) from error


def require_clone() -> None:
    """Raise CourseError if hookedu runs from a wheel.

    A wheel has no sources of lessons, which the commands for authors need.
    """
    if not IN_CLONE:
        raise CourseError(
            Text(
                zh="这个命令给课程作者用，需要课程仓库的副本（clone）：装好的包里只有生成的笔记本，没有 `course/` 里的源文件。"
                "请克隆仓库，在那里运行。",
                en="This command is for authors and needs a clone of the course: an installed package holds the built "
                "notebooks, not their sources in `course/`. Clone the repository and run it there.",
            )
        )


def find(name: str) -> Lesson:
    """Return the lesson called "02", "02_tensor_hooks" or "02_tensor_hooks.ipynb".

    Raises CourseError with the closest names if there is none.
    """
    stem = Path(name).stem
    for lesson in lessons():
        if stem in (lesson.id, lesson.file):
            return lesson
    near = difflib.get_close_matches(stem, [x for le in lessons() for x in (le.id, le.file)], n=2, cutoff=0.0)
    raise CourseError(
        Text(
            zh="没有叫 `{name}` 的课。最接近的是：{near}。",
            en="There is no lesson `{name}`. The nearest: {near}.",
        ).format(name=name, near=", ".join(f"`{n}`" for n in near))
    )
