"""Tests of what becomes of the widgets of an earlier day."""

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output

from hookedu.learner.stale_widgets import replace_widgets

VIEW = {"application/vnd.jupyter.widget-view+json": {"model_id": "gone", "version_major": 2}}


@pytest.fixture(autouse=True)
def signatures(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))


def saved(folder, *outputs):
    """Save a notebook of one cell with these outputs, and return its path."""
    cell = new_code_cell("guess()", id="a", outputs=list(outputs))
    path = folder / "lesson.ipynb"
    nbformat.write(new_notebook(cells=[cell]), path)
    return path


def shows(data):
    return new_output("execute_result", data | {"text/plain": "Guess()"}, execution_count=1)


def test_a_widget_that_is_gone_says_how_to_get_it_back(tmp_path):
    path = saved(tmp_path, new_output("stream", text="printed"), shows(VIEW))
    replace_widgets(tmp_path)
    printed, widget = nbformat.read(path, as_version=4).cells[0].outputs
    assert printed.text == "printed"
    assert not set(VIEW) & set(widget.data) and widget.execution_count == 1
    for part in widget.data["text/html"], widget.data["text/plain"]:
        assert "run the cells above" in part and "先运行上面的单元格" in part


def test_its_still_picture_stays_above_the_line(tmp_path):
    path = saved(tmp_path, shows(VIEW | {"image/png": "iVBORw0KGgo="}))
    replace_widgets(tmp_path)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    still, line = notebook.cells[0].outputs
    assert set(still.data) == {"image/png", "text/plain"}
    assert "run the cells above" in line.data["text/html"]
    before = path.read_bytes()
    replace_widgets(tmp_path)
    assert path.read_bytes() == before


def test_other_notebooks_stay_to_the_byte(tmp_path):
    path = saved(tmp_path, shows({"text/html": "<b>1</b>"}))
    (tmp_path / "broken.ipynb").write_text("no notebook")
    before = path.read_bytes()
    replace_widgets(tmp_path)
    assert path.read_bytes() == before and (tmp_path / "broken.ipynb").read_text() == "no notebook"


@pytest.mark.parametrize("trusted", [True, False])
def test_trust_stays_as_it_is(trusted, tmp_path):
    path = saved(tmp_path, shows(VIEW))
    if trusted:
        NotebookNotary().sign(nbformat.read(path, as_version=4))
    replace_widgets(tmp_path)
    after = nbformat.read(path, as_version=4)
    assert not set(VIEW) & set(after.cells[0].outputs[0].data)
    assert bool(NotebookNotary().check_signature(after)) is trusted
