"""Property of handing out: whatever is damaged in one copy or in the record, nothing is lost, and the rest is handed out."""

import json
import tempfile
from pathlib import Path

import nbformat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookedu import catalog
from hookedu.cells import source_of, variants_of
from hookedu.learner.hand_outs import hand_out
from hookedu.learner.stale_widgets import replace_widgets

MINE, OTHER = "02_tensor_hooks.ipynb", "00_start_here.ipynb"
ANSWER = "def watch(y, seen):\n    return y.register_hook(seen.append)  # my own"
VIEW = {"application/vnd.jupyter.widget-view+json": {"model_id": "gone"}, "text/plain": "Guess()"}
DEEP = b'{"nbformat": 4, "cells": [], "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture(scope="module")
def two():
    """Let the course have two lessons, which are handed out in a moment."""
    lessons = catalog.find("00"), catalog.find("02")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "lessons", lambda: lessons)
        yield


@pytest.fixture(scope="module")
def worked_in(two, tmp_path_factory):
    """Hand out, answer an exercise, and let a widget be shown; return the learner's notebook and the record as JSON."""
    folder = tmp_path_factory.mktemp("mine")
    hand_out(folder, "en")
    notebook = json.loads((folder / MINE).read_bytes())
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    cells["exercise-02-1"]["source"] = ANSWER
    cells["exercise-02-1"]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": VIEW}]
    return json.dumps(notebook), (folder / ".hookedu.json").read_text()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
# How to go from the whole to a place in it: at each step one of the parts, or here.
steps = st.lists(st.integers(0, 10_000), max_size=7)


def damaged(whole, way, value):
    """Return a JSON value with `value` at one place in it."""
    node, places = whole, []
    for step in way:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        places.append((node, keys[step % len(keys)]))
        node = node[places[-1][1]]
        if not isinstance(node, (dict, list)):
            break
    if not places:
        return value
    node, key = places[-1]
    node[key] = value
    return whole


def hands_out(copied: bytes, record: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_out(folder, "en")
        (folder / MINE).write_bytes(copied)
        (folder / ".hookedu.json").write_bytes(record)
        for language in ("zh", "zh", "en"):
            hand_out(folder, language)
            replace_widgets(folder)
        nbformat.validate(nbformat.read(folder / OTHER, as_version=4))
        now = [source_of(cell) for cell in json.loads((folder / MINE).read_bytes())["cells"]]
        aside = folder / f"{Path(MINE).stem}-damaged.ipynb"
        if aside.exists():
            assert aside.read_bytes() == copied and "# 02" in now[0]
        else:
            for cell in json.loads(copied)["cells"]:
                assert source_of(cell) in now or source_of(cell) in handed_out(), source_of(cell)


def handed_out() -> set[str]:
    cells = json.loads(catalog.find("02").notebook.read_bytes())["cells"]
    return {text for cell in cells for text in (source_of(cell), *variants_of(cell).values())}


@settings(deadline=None, max_examples=60)
@given(steps, json_values)
@example((), [])
@example((), {})
def test_any_value_at_any_place_of_a_copy(worked_in, way, value):
    notebook, record = map(json.loads, worked_in)
    hands_out(json.dumps(damaged(notebook, way, value)).encode(), json.dumps(record).encode())


@settings(deadline=None, max_examples=60)
@given(steps, json_values)
def test_any_value_at_any_place_of_the_record(worked_in, way, value):
    notebook, record = map(json.loads, worked_in)
    hands_out(json.dumps(notebook).encode(), json.dumps(damaged(record, way, value)).encode())


def at(*way):
    """Return what puts a value at a place of a notebook; "02.1" stands for the cell of that exercise."""

    def put(notebook, value):
        node = notebook
        for key in way[:-1]:
            node = next(c for c in node if c["id"] == "exercise-02-1") if key == "02.1" else node[key]
        node[way[-1]] = value

    return put


@pytest.mark.parametrize(
    "put",
    [
        at("metadata"),
        at("metadata", "kernelspec"),
        at("metadata", "kernelspec", "name"),
        at("nbformat_minor"),
        at("cells", "02.1", "id"),
        at("cells", "02.1", "metadata"),
        at("cells", "02.1", "metadata", "nbgrader"),
        at("cells", "02.1", "metadata", "nbgrader", "grade_id"),
        at("cells", "02.1", "metadata", "hookedu"),
        at("cells", "02.1", "metadata", "hookedu", "languages"),
        at("cells", "02.1", "outputs"),
        at("cells", "02.1", "outputs", 0),
        at("cells", "02.1", "outputs", 0, "data"),
    ],
)
@pytest.mark.parametrize("value", [None, ["application/vnd.jupyter.widget-view+json"], 7, {"a": None}])
def test_a_part_that_means_nothing_costs_neither_the_copy_nor_the_answer(worked_in, put, value, tmp_path):
    notebook, record = json.loads(worked_in[0]), worked_in[1]
    put(notebook, value)
    (tmp_path / MINE).write_text(json.dumps(notebook))
    (tmp_path / ".hookedu.json").write_text(record)
    hand_out(tmp_path, "zh")
    replace_widgets(tmp_path)
    cells = json.loads((tmp_path / MINE).read_bytes())["cells"]
    assert {p.name for p in tmp_path.glob("*.ipynb")} == {MINE, OTHER}
    assert [source_of(cell) for cell in cells].count(ANSWER) == 1 and len(cells) == len(notebook["cells"])


@pytest.mark.parametrize("record", [None, 1, [], {MINE: 5}, {MINE: {}}, {MINE: {"exercise-02-1": None}}])
def test_a_record_that_means_nothing_costs_no_answer(worked_in, record, tmp_path):
    (tmp_path / MINE).write_text(worked_in[0])
    (tmp_path / ".hookedu.json").write_text(json.dumps(record))
    hand_out(tmp_path, "zh")
    cells = json.loads((tmp_path / MINE).read_bytes())["cells"]
    assert [source_of(cell) for cell in cells].count(ANSWER) == 1


def test_each_damaged_copy_is_put_aside_under_a_name_of_its_own(two, tmp_path):
    contents = (b"", b"<<<<<<< HEAD", DEEP)
    for content in contents:
        (tmp_path / MINE).write_bytes(content)
        (said,) = hand_out(tmp_path, "en")
        assert "-damaged" in said.en and "-damaged" in said.zh
        assert json.loads((tmp_path / MINE).read_bytes())["cells"]
    names = [f"02_tensor_hooks-damaged{n}.ipynb" for n in ("", "2", "3")]
    assert tuple((tmp_path / name).read_bytes() for name in names) == contents
    assert hand_out(tmp_path, "en") == []


def test_a_folder_or_a_dead_link_in_the_place_of_a_lesson_is_put_aside(two, tmp_path):
    (tmp_path / MINE).mkdir()
    (tmp_path / OTHER).symlink_to(tmp_path / "gone" / OTHER)
    assert len(hand_out(tmp_path, "en")) == 2
    assert all((tmp_path / name).is_file() for name in (MINE, OTHER))
