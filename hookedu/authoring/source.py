"""A lesson as its author writes it: course/NN_name.py, in jupytext's percent format.

# %% tags=["setup"]                  code that every exercise of the lesson may use
# %% tags=["E1", "F3"]               code that shows experiment E1 and fact F3
# %% [markdown]                      prose, in both languages; <!-- lessons 05-08 --> becomes a table of these lessons
# %% exercise="02.1"                 the reference answer, between ### BEGIN SOLUTION and ### END SOLUTION
# %% check="02.1"                    the cell that checks it
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from hookedu.authoring import lesson_tables
from hookedu.catalog import Lesson
from hookedu.language import Text

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
_MARKER = re.compile(r"^# %%", re.MULTILINE)
_BLOCK = re.compile(r'<div lang="(zh|en)">\n(.*?)\n</div>', re.DOTALL)
_FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson's source, and where it stands there."""

    line: int  # of its `# %%` marker; 1 is the file's first
    is_code: bool
    text: str
    tags: tuple[str, ...] = ()
    exercise: str | None = None
    check: str | None = None
    options: dict = field(default_factory=dict)  # what else stood on the marker's line

    def prose(self, language: str) -> str:
        """What this cell says in "zh" or "en"; "" where it says nothing."""
        return "\n".join(text for lang, text in _BLOCK.findall(self.text) if lang == language).strip()

    @property
    def frame(self) -> str:
        """What stands outside the language blocks: headings, difficulty, boxes."""
        return _BLOCK.sub("", self.text)


@dataclass(frozen=True)
class Problem:
    """Something in a lesson's source, or in a guide, that has to be mended before it is built."""

    file: str  # "course/02_tensor_hooks.py"
    line: int
    says: Text

    @property
    def text(self) -> Text:
        """File, line and remedy, as a compiler says it."""
        place = f"{self.file}:{self.line}: "
        return Text(zh=place + self.says.zh, en=place + self.says.en)


def read(lesson: Lesson) -> list[Cell]:
    """The cells of a lesson's source, in order."""
    import jupytext  # an author's tool: learners do not have it

    text = lesson.source.read_text(encoding="utf-8")
    lines = [text.count("\n", 0, m.start()) + 1 for m in _MARKER.finditer(text)]
    cells = jupytext.reads(text, fmt="py:percent").cells
    if len(cells) == len(lines) + 1:  # something stands before the first marker
        lines.insert(0, 1)
    found = []
    for line, cell in zip(lines, cells, strict=True):
        options = {k: v for k, v in cell.metadata.items() if k not in ("tags", "exercise", "check")}
        found.append(
            Cell(
                line=line,
                is_code=cell.cell_type == "code",
                text=lesson_tables.fill_in(cell.source),
                tags=tuple(cell.metadata.get("tags", ())),
                exercise=cell.metadata.get("exercise"),
                check=cell.metadata.get("check"),
                options=options,
            )
        )
    return found


def read_guide(path: Path) -> list[Cell]:
    """A guide's prose: one cell from each Chinese block to the next, without its blocks of code."""
    text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
    blocks = [match.start() for match in re.finditer(r'^<div lang="zh">$', text, re.MULTILINE)] or [0]
    cuts = [0, *blocks[1:], len(text)]
    return [
        Cell(line=text.count("\n", 0, block) + 1, is_code=False, text=text[start:end])
        for block, (start, end) in zip(blocks, pairwise(cuts), strict=True)
    ]
