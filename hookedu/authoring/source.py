"""Reader of lesson sources: course/NN_name.py in jupytext's percent format.

# %% tags=["setup"]                  code that every exercise of the lesson may use
# %% tags=["E1", "F3"]               code that shows experiment E1 and fact F3
# %% [markdown]                      prose in both languages; <!-- lessons 05-08 --> becomes a table
# %% exercise="02.1"                 reference answer, between ### BEGIN SOLUTION and ### END SOLUTION
# %% check="02.1"                    cell that checks the answer
# %% picture="chain"                 what its picture shows is said in NN_name.pictures.yml
# %%
# guess("02.a")                      a guess, in a cell of its own before the code that shows the truth
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hookedu import guesses, yaml_files
from hookedu.authoring import lesson_tables
from hookedu.catalog import Lesson
from hookedu.language import LANGUAGES, Text

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
_MARKER = re.compile(r"^# %%", re.MULTILINE)
_BLOCK = re.compile(r'<div lang="(zh|en)">\n(.*?)\n</div>', re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson's source, with its position."""

    line: int  # of the `# %%` marker, counted from 1
    is_code: bool
    text: str
    tags: tuple[str, ...] = ()
    exercise: str | None = None
    check: str | None = None
    picture: str | None = None
    options: dict = field(default_factory=dict)  # the other options on the line of the marker

    def prose(self, language: str) -> str:
        """Return the prose in language "zh" or "en", or "" if there is none."""
        return "\n".join(text for lang, text in _BLOCK.findall(self.text) if lang == language).strip()

    @property
    def guess(self) -> str | None:
        """The id of the guess that this cell asks for, or None."""
        return guesses.asked_in(self.text) if self.is_code else None

    @property
    def frame(self) -> str:
        """Markdown outside the language blocks: headings, difficulty, boxes."""
        return _BLOCK.sub("", self.text)


@dataclass(frozen=True)
class Problem:
    """A violation of a rule in a lesson's source or in a page."""

    file: str  # "course/02_tensor_hooks.py"
    line: int
    says: Text

    @property
    def text(self) -> Text:
        """File, line and remedy, in the format of a compiler message."""
        place = f"{self.file}:{self.line}: "
        return Text(zh=place + self.says.zh, en=place + self.says.en)


def read(lesson: Lesson) -> list[Cell]:
    """Return the cells of a lesson's source, in order."""
    import jupytext  # a dependency of authors only; learners do not have it

    text = lesson.source.read_text(encoding="utf-8")
    lines = [text.count("\n", 0, m.start()) + 1 for m in _MARKER.finditer(text)]
    cells = jupytext.reads(text, fmt="py:percent").cells
    if len(cells) == len(lines) + 1:  # there is text before the first marker
        lines.insert(0, 1)
    found = []
    for line, cell in zip(lines, cells, strict=True):
        known = {name: cell.metadata.get(name) for name in ("exercise", "check", "picture")}
        options = {k: v for k, v in cell.metadata.items() if k not in (*known, "tags")}
        found.append(
            Cell(
                line=line,
                is_code=cell.cell_type == "code",
                text=lesson_tables.fill_in(cell.source),
                tags=tuple(cell.metadata.get("tags", ())),
                options=options,
                **known,
            )
        )
    return found


def read_words(path: Path) -> list[Cell]:
    """Return the texts of a file of words, course/NN_name.yml, as prose: one cell per text."""
    import yaml

    def texts(node: yaml.Node | None) -> Iterator[Cell]:
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from texts(item)
        elif isinstance(node, yaml.MappingNode):
            sides = {key.value: value for key, value in node.value}
            if sides.keys() & set(LANGUAGES):
                said = {lang: sides[lang].value if lang in sides else "" for lang in LANGUAGES}
                blocks = [f'<div lang="{lang}">\n{text}\n</div>' for lang, text in said.items() if text]
                yield Cell(line=node.start_mark.line + 1, is_code=False, text="\n".join(blocks))
            else:
                for _, value in node.value:
                    yield from texts(value)

    return list(texts(yaml_files.compose(path)))
