"""The statements of the lessons and the cells that show them: one file NN.yml per lesson.

Every sentence in a box "Common mistake", a recap or a recall answer is listed, in the English wording:

    - says: "Running a cell three times registers three hooks."
      shown: "for _ in range(3):"         # a line of the code cell that shows it, in this lesson
      prints: 'fired 3 times'             # a regular expression that the cell's stored output matches
    - says: "..."
      lesson: "05"                        # the cell is in another lesson
      shown: "..."
      prints: '...'
    - says: "..."
      exercise: "12.1"                    # learners see it themselves: the check of this exercise would refuse the contrary
    - says: "Keep the handle."
      states: nothing                     # advice, a definition, a connecting sentence: nothing that could be false of PyTorch
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from hookedu import catalog
from hookedu.authoring import source

FOLDER = Path(__file__).parent
_CODE = re.compile(r"`[^`]*`|<code>.*?</code>")
_END = re.compile(r"(?<=[.?!])[\"”)*]*\s+(?=[\"“(*]*[A-Z`\d]|<code>)")
_BOX = re.compile(r'<div class="mistake">.*?<div lang="en">(.*?)</div>', re.DOTALL)
_ANSWER = re.compile(r"</summary>(.*?)</details>", re.DOTALL)
_ITEM = re.compile(r"^\d+\. (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Claim:
    """A sentence of a lesson and what shows that it is true; see the docstring of this module."""

    says: str
    shown: str = ""
    prints: str = ""
    lesson: str = ""
    exercise: str = ""
    states: str = ""


def claims(lesson: str) -> list[Claim]:
    """Return the listed claims of the lesson with this number; none where there is no list, which a test reports."""
    path = FOLDER / f"{lesson}.yml"
    return [Claim(**row) for row in yaml.safe_load(path.read_text(encoding="utf-8"))] if path.exists() else []


def sentences(lesson: catalog.Lesson) -> list[str]:
    """Return every English sentence in the boxes, the recap and the recall answers of a lesson, in order."""
    found = []
    for cell in source.read(lesson):
        prose = html.unescape(cell.prose("en"))
        found += [html.unescape(text) for text in _BOX.findall(cell.text)]
        if "小结 · Recap" in cell.text:
            found += _ITEM.findall(prose)
        elif "回想一下 · Recall" in cell.text:
            found += _ANSWER.findall(prose)
    return [sentence for text in found for paragraph in text.split("\n\n") for sentence in _split(paragraph)]


def _split(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph; a full stop inside of code ends none."""
    codes: list[str] = []

    def hide(match: re.Match) -> str:
        codes.append(match[0])
        return f"`{len(codes) - 1}`"

    hidden = _CODE.sub(hide, " ".join(paragraph.split()))
    return [re.sub(r"`(\d+)`", lambda m: codes[int(m[1])], part) for part in _END.split(hidden) if part]
