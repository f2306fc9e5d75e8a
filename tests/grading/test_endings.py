"""Of a submission that did not end by itself, the row says where it was, and the rest of it keeps its points."""

import io

import pytest
from rich.console import Console

from hookedu.grading.batch import grade
from hookedu.grading.rows import Status
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-endings"), pytest.mark.isolated]
FILE = "02_tensor_hooks.ipynb"


def with_cell(source):
    return nb.before(nb.answered(nb.reference()), "02.3", [nb.code(source)])


def in_cell(source):
    """Return what is said of the cell that `with_cell` adds."""
    number = with_cell(source)["cells"].index(nb.code(source)) + 1
    return f"it was in cell {number} of the notebook, which begins with `{source.split(chr(10))[0]}`"


LOOP, GONE = "n = 1  # then wait\nwhile n:\n    pass", "import os; os._exit(3)"
CASES = {
    "loops": (with_cell(LOOP), Status.TIMEOUT, [3, 3, 4, 5], in_cell(LOOP)),
    "leaves": (with_cell(GONE), Status.KILLED, [3, 3, 4, 5], in_cell(GONE)),
    "loops-in-a-check": (
        nb.answered(nb.reference() | {"02.2": "def watch_many(tensors, seen):\n    while True: pass"}),
        Status.TIMEOUT,
        [3, 0, 4, 5],
        "it was in the check of exercise 02.2",
    ),
    "leaves-in-a-check": (
        nb.answered(nb.reference() | {"02.3": "def observe_once(y, seen): import os; os._exit(0)"}),
        Status.KILLED,
        [3, 3, 0, 5],
        "it was in the check of exercise 02.3",
    ),
    "crashes-where-the-answer-stands": (
        nb.answered(nb.reference() | {"02.2": f"import os\nos.abort()\n{nb.reference()['02.2']}"}),
        Status.KILLED,
        [3, 0, 4, 5],
        "the process was ended by signal",
    ),
    "leaves-in-many-cells": (
        nb.before(with_cell(GONE), "02.1", [nb.code(f"n = {n}; {GONE}") for n in range(5)]),
        Status.KILLED,
        [3, 3, 4, 5],
        "the rest was run again without it",
    ),
    "leaves-in-every-cell": (
        nb.before(with_cell(GONE), "02.1", [nb.code(f"n = {n}; {GONE}") for n in range(50)]),
        Status.KILLED,
        [0, 0, 0, 0],
        "the rest was run again without it",
    ),
    "loops-in-two-cells": (
        nb.before(with_cell(LOOP), "02.1", [nb.code("while True: pass")]),
        Status.TIMEOUT,
        [3, 3, 0, 0],
        "which begins with `while True: pass`",
    ),
    "ends": (nb.answered(nb.reference()), Status.GRADED, [3, 3, 4, 5], ""),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("endings")
    for name, (notebook, *_) in CASES.items():
        nb.hand_in(root / "class" / name / FILE, notebook)
    done = grade(root / "class", root / "out", time_limit=3, console=Console(file=io.StringIO()))
    return {row.student: row for row in done.rows}


@pytest.mark.parametrize("name", CASES)
def test_the_row_names_the_cell_or_the_exercise_and_the_rest_counts(rows, name):
    _, status, points, said = CASES[name]
    assert (rows[name].status, [result.points for result in rows[name].results]) == (status, points)
    assert any(said in note.en for note in rows[name].notes) if said else not rows[name].notes
    assert len(rows[name].notes) < 70 and rows[name].seconds < 60
