"""Tests of the output of the solutions: each tag has expected figures, and its cells print them."""

import re

import nbformat
import pytest

from hookedu import catalog
from hookedu.authoring import source
from tests.figures import FIGURES, OF_THIS_TORCH


def printed(lesson: str, tag: str) -> str:
    """Return the printed output of all cells of a solution that have the tag."""
    notebook = nbformat.read(catalog.find(lesson).solution, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and tag in c.metadata.get("tags", ())]
    return "\n".join(o.text for c in cells for o in c.outputs if o.output_type == "stream")


def hold(lesson: str, tag: str, text: str) -> None:
    """Assert that the expected patterns of a tag match `text` one after the other."""
    at = 0
    for pattern in FIGURES[lesson, tag]:
        found = re.compile(pattern).search(text, at)
        assert found, f"{tag}: {pattern!r} is not printed after {text[:at]!r}; printed: {text[at:]!r}"
        at = found.end()


@pytest.mark.parametrize(("lesson", "tag"), FIGURES, ids=lambda v: v)
def test_the_figure_is_the_one_of_the_syllabus(lesson, tag):
    hold(lesson, tag, printed(lesson, tag))


@pytest.mark.parametrize(("lesson", "tag"), OF_THIS_TORCH, ids=lambda v: v)
def test_this_torch_still_does_what_the_lesson_says(lesson, tag, capsys):
    """If this fails, torch has changed: rewrite the box and the figure of the fact for the new version."""
    namespace: dict = {"__name__": f"lesson_{lesson}"}
    for cell in source.read(catalog.find(lesson)):
        if cell.is_code and ("setup" in cell.tags or tag in cell.tags):
            exec(compile(cell.text, f"course/{lesson}:{cell.line}", "exec"), namespace)
    hold(lesson, tag, capsys.readouterr().out)


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_no_tag_without_a_figure(lesson):
    notebook = nbformat.read(lesson.solution, as_version=4)
    tags = {t for c in notebook.cells for t in c.metadata.get("tags", ()) if re.fullmatch(r"[EF]\d+", t)}
    assert tags == {tag for number, tag in FIGURES if number == lesson.id}
