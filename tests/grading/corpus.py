"""What a submission of the corpus is, and how such notebooks are made; corpus_*.py hold the submissions themselves."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookedu.grading.rows import Status
from tests.grading import notebooks as nb

FILE = "02_tensor_hooks.ipynb"
IDS = ("02.1", "02.2", "02.3", "02.4")
POINTS = [3, 3, 4, 5]
ANSWER = nb.reference()["02.1"]
STUB = "\ndef watch(y, seen): pass\n"  # a wrong answer

# How a submission ends: its status, and the points of its four exercises. From WRONG to KILLED, and in NO_MEMORY, the first
# answer fails and costs itself alone.
RIGHT = (Status.GRADED, POINTS)
WRONG = RAISED = (Status.GRADED, [0, *POINTS[1:]])
STOPPED = (Status.TIMEOUT, [0, *POINTS[1:]])
KILLED = (Status.KILLED, [0, *POINTS[1:]])
RUINED = (Status.KILLED, [0] * 4)  # what it has done to its process ends every later cell
NO_MEMORY = (Status.OUT_OF_MEMORY, [0, *POINTS[1:]])
NOTHING = (Status.GRADED, [0] * 4)
REFUSED = (Status.UNREADABLE, [0] * 4)
FORGED = (Status.TAMPERED, [0] * 4)
UNTOUCHED = (Status.NOT_ATTEMPTED, [0] * 4)


@dataclass(frozen=True)
class Case:
    """One submission and its expected row.

    A content that is a str is the source of the first answer, the others being right. Of other contents that are not
    bytes, the words PORT_IN, PORT_OUT, SOCKET, CLASS, ROOT and LITTER are replaced, see test_corpus.py.
    """

    content: dict[str, Any] | bytes | str | Callable[[Path], object]  # a callable makes what lies at the path
    status: Status
    points: list[int]  # of its four exercises
    error: str = ""  # beginning of the error that the first exercise raises
    file: str = FILE
    notes: tuple[str, ...] = ()  # texts that the notes of the row must contain
    reached: tuple[str, ...] = ()  # what it is told to have reached for behind the scenes
    lost: bool = True  # whether an end that is not `graded` left no verdict at all


def notebook() -> dict[str, Any]:
    """Return a notebook of right answers."""
    return nb.answered(nb.reference())


def packed(content: object) -> bytes:
    """Return the bytes of a notebook as Jupyter writes it, in one line."""
    return json.dumps(content, ensure_ascii=False).encode()


def with_cell(source: str) -> dict[str, Any]:
    """Return a notebook of right answers with a cell before them."""
    return nb.before(notebook(), "02.1", [nb.code(source)])


def edited(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a notebook of right answers after a change to its JSON."""
    made = notebook()
    change(made)
    return made


def each_cell(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a notebook of right answers after a change to the JSON of each cell."""
    return edited(lambda made: [change(cell) for cell in made["cells"]])


def first_answer(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return a notebook of right answers after a change to the JSON of the cell of the first."""
    return edited(lambda made: change(nb.cell_of(made, "02.1")))
