"""Where the course lies on disk and what course.yml says about it."""

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hookedu.language import Text

_CLONE = Path(__file__).resolve().parent.parent
IN_CLONE = (_CLONE / "course" / "course.yml").exists()
# course.yml, lessons and solutions: those of the clone that hookedu lies in, else the copies that its wheel carries.
ROOT = _CLONE if IN_CLONE else Path(__file__).resolve().with_name("_course")


class CourseError(Exception):
    """Something that the user of a command can mend: each text says what is wrong and what to do."""

    def __init__(self, *says: Text):
        self.says = says
        super().__init__("\n".join(map(str, says)))


@dataclass(frozen=True)
class Lesson:
    """One lesson as course.yml describes it."""

    file: str  # "02_tensor_hooks"
    title: Text
    minutes: int
    difficulty: int  # 1 to 5
    goals: tuple[Text, ...]
    needs: Text
    about: Text  # one line for the map of the course
    after: tuple[str, ...]  # the numbers of the lessons that lead to it directly
    root: Path = ROOT  # the copy of the course that it belongs to

    @property
    def id(self) -> str:
        """Its number: "02"."""
        return self.file[:2]

    @property
    def source(self) -> Path:
        """What is written by hand."""
        return self.root / "course" / f"{self.file}.py"

    @property
    def notebook(self) -> Path:
        """The learner's notebook: answers stripped, no outputs."""
        return self.root / "lessons" / f"{self.file}.ipynb"

    @property
    def solution(self) -> Path:
        """The same notebook answered and run."""
        return self.root / "solutions" / f"{self.file}.ipynb"


def _text(node: dict[str, Any]) -> Text:
    return Text(zh=node["zh"], en=node["en"])


@cache
def lessons() -> tuple[Lesson, ...]:
    """Every lesson of the course, in the order of course.yml."""
    import yaml

    path = ROOT / "course" / "course.yml"
    if not path.exists():
        raise CourseError(
            Text(
                zh="找不到课程文件 `{path}`。请重新安装 hookedu，或者把课程仓库重新克隆一份。",
                en="The course file `{path}` is missing. Install hookedu again, or clone the course anew.",
            ).format(path=path)
        )
    found = []
    for node in yaml.safe_load(path.read_text(encoding="utf-8"))["lessons"]:
        found.append(
            Lesson(
                file=node["file"],
                title=_text(node["title"]),
                minutes=node["minutes"],
                difficulty=node["difficulty"],
                goals=tuple(map(_text, node["goals"])),
                needs=_text(node["needs"]),
                about=_text(node.get("about", node["goals"][0])),
                after=tuple(node.get("after", ())),
            )
        )
    return tuple(found)


def require_clone() -> None:
    """For the commands of authors: CourseError where hookedu came as a wheel, which has no sources of lessons."""
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
    """The lesson called "02", "02_tensor_hooks" or "02_tensor_hooks.ipynb"; CourseError names the nearest."""
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
