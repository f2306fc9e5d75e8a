"""Tests that whatever a lesson states in boxes, recaps and recall answers is shown by a cell: see tests/claims."""

import re

import nbformat
import pytest

from hookedu import catalog, exercises
from tests.claims import Claim, claims, sentences

LESSONS = [lesson.id for lesson in catalog.lessons()]
CLAIMS = [
    pytest.param(lesson, claim, id=f"{lesson}-{i}")
    for lesson in LESSONS
    for i, claim in enumerate(claims(lesson))
]


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_statement_without_a_claim_and_no_claim_without_its_statement(lesson):
    listed = f"tests/claims/{lesson}.yml lists every sentence of the boxes, the recap and the recall answers, in order"
    assert [claim.says for claim in claims(lesson)] == sentences(catalog.find(lesson)), listed


@pytest.mark.parametrize(("lesson", "claim"), CLAIMS)
def test_a_cell_shows_what_is_claimed(lesson, claim: Claim):
    if claim.exercise:
        assert exercises.find(claim.exercise)
        return
    if claim.states:
        assert claim.states == "nothing"
        return
    notebook = nbformat.read(catalog.find(claim.lesson or lesson).solution, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and claim.shown in c.source]
    assert claim.shown and len(cells) == 1, f"{len(cells)} cells have the line {claim.shown!r}"
    assert claim.prints and re.search(claim.prints, output(cells[0])), (
        f"{claim.prints!r} is not in:\n{output(cells[0])}"
    )


def output(cell: nbformat.NotebookNode) -> str:
    """Return all text that a cell has put out: prints, warnings, its last value, an error."""
    texts = []
    for part in cell.outputs:
        if part.output_type == "stream":
            texts.append(part.text)
        elif part.output_type == "error":
            texts.append(f"{part.ename}: {part.evalue}")
        else:
            texts.append(part.data.get("text/plain", ""))
    return "\n".join(texts)
