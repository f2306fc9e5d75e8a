"""Tests of building notebooks: reproducible bytes, detection of edits by hand, and no partial output."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest

from hookedu import catalog, exercises
from hookedu.authoring import build
from hookedu.authoring.build import BuildError
from hookedu.exercises.probing import STUB

LESSON, SOLUTION = "lessons/02_tensor_hooks.ipynb", "solutions/02_tensor_hooks.ipynb"
SOURCE = "course/02_tensor_hooks.py"
GUESSES = "course/02_tensor_hooks.guesses.yml"


def test_building_again_changes_no_byte(clone):
    """The first build is the committed one, possibly made on another machine."""
    committed = clone.built()
    run = clone.hookedu("build", "02")
    assert run.returncode == 0
    done, of = re.findall(r"(\d+)/(\d+)", run.stdout)[-1]
    assert done == of and "WARNING" not in run.stdout + run.stderr
    assert clone.built() == committed


def test_the_built_notebooks_are_up_to_date():
    assert build.check(catalog.lessons()) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "cell"),
    [
        (LESSON, "先猜一猜", "先想一想", "02-cell-02"),
        (LESSON, "return the handle", "return the Handle", "exercise-02-1"),
        (LESSON, '"points": 3', '"points": 4', "exercise-02-1-check"),
        (SOLUTION, "seen.append(grad)", "seen.append(grad )", "02-cell-05"),
        (SOLUTION, "x.grad: tensor([1., 1., 1., 1.])", "x.grad: tensor([1., 1., 1., 2.])", "02-cell-03"),
        (SOLUTION, '"id": "02-cell-07"', '"id": "02-cell-77"', "02-cell-07"),
        (LESSON, '"display_name": "Python 3 (ipykernel)"', '"display_name": "Python 3"', ""),
        (LESSON, '{\n "cells"', '{\n  "cells"', ""),
    ],
    ids=["prose", "stub", "points", "solution-code", "stored-output", "cell-id", "kernelspec", "white-space"],
)
def test_one_changed_character_fails_the_check(clone, file, old, new, cell):
    clone.replace(file, old, new)
    stale = build.check([clone.lesson("02")])[0]
    assert (stale.file, stale.cell) == (file, cell)
    assert file in str(stale) and cell in str(stale)
    body = stale.diff.splitlines()[2:]
    removed, added = ({line[1:] for line in body if line.startswith(sign)} for sign in "-+")
    assert removed != added, "what was changed is seen, however long the cell"


@pytest.mark.parametrize(
    "content", [None, "", "{", '{"cells": 3}'], ids=["missing", "empty", "truncated", "no-cells"]
)
def test_a_spoilt_notebook_fails_the_check(clone, content):
    path = clone.root / LESSON
    path.unlink() if content is None else path.write_text(content)
    (stale,) = build.check([clone.lesson("02")])
    assert stale.file == LESSON


def test_the_command_names_what_is_stale_and_what_to_do(clone):
    clone.replace(LESSON, "先猜一猜", "先想一想")
    run = clone.hookedu("build", "--check", "02")
    assert run.returncode == 1 and "Traceback" not in run.stderr
    for part in (LESSON, "02-cell-02", "先想一想", "change course/, then run `hookedu build`"):
        assert part in run.stderr


@pytest.mark.parametrize("tampered", [False, True])
def test_nbval_compares_the_stored_outputs(clone, tampered):
    if tampered:
        clone.replace(SOLUTION, "the hook on a saw: tensor(2.)", "the hook on a saw: tensor(3.)")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        SOLUTION,
    ]
    run = subprocess.run(
        command, cwd=clone.root, env=clone.env, capture_output=True, encoding="utf-8", timeout=300
    )
    assert run.returncode == (1 if tampered else 0), run.stdout
    assert ("1 failed" in run.stdout) == tampered


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        (
            '<div lang="en">\n#\n# Below, $z=',
            "<div>\n#\n# Below, $z=",
            "# %% [markdown]\n# ## 2.1 ",
            "write both languages",
        ),
        ("    ### END SOLUTION\n", "", "    ### BEGIN SOLUTION", "needs an `### END SOLUTION`"),
        ('# %% exercise="02.2"', '# %% exercise="02.1"', '# %% exercise="02.2"', "a second time"),
        ('# %% exercise="02.1"', '# %% exercise="02.9"', '# %% exercise="02.1"', "The nearest ids"),
    ],
    ids=["one-language", "unclosed-marker", "duplicate-id", "unknown-exercise"],
)
def test_a_broken_source_is_named_and_nothing_is_written(clone, old, new, line, says):
    before, text = clone.built(), (clone.root / SOURCE).read_text(encoding="utf-8")
    number = text[: text.index(line)].count("\n") + 1
    clone.replace(SOURCE, old, new)
    with pytest.raises(BuildError) as caught:
        build.build([clone.lesson("02")])
    assert f"{SOURCE}:{number}: " in str(caught.value) and says in str(caught.value)
    assert clone.built() == before


def test_the_command_says_what_is_broken_in_one_text(clone):
    clone.replace(SOURCE, "    ### END SOLUTION\n", "")
    run = clone.hookedu("build", "02")
    assert run.returncode == 2 and f"{SOURCE}:" in run.stderr and "Traceback" not in run.stderr


def test_a_solution_that_raises_is_named_and_nothing_is_written(clone):
    before = clone.built()
    clone.replace(SOURCE, 'print("y.grad:", y.grad)', 'print("y.grad:", y.nope)')
    with pytest.raises(BuildError, match=r"02-cell-03(.|\n)*AttributeError"):
        build.build([clone.lesson("02")])
    assert clone.built() == before


def test_a_reference_answer_that_fails_its_check_is_refused(clone):
    clone.replace(SOURCE, "    return y.register_hook(keep)\n", "    y.register_hook(keep)\n")
    with pytest.raises(BuildError, match="exercise-02-1-check does not pass its own check"):
        build.build([clone.lesson("02")])


def test_a_picture_without_words_is_refused(clone):
    before = clone.built()
    clone.replace(SOURCE, 'print("y.grad:", y.grad)', 'print("y.grad:", y.grad)\n_ = plot_graph(y, {"y": y})')
    with pytest.raises(
        BuildError, match=r"draws a picture, and nothing says(.|\n)*02_tensor_hooks\.pictures"
    ):
        build.build([clone.lesson("02")])
    assert clone.built() == before


def test_what_a_picture_shows_is_in_its_cell_in_both_languages():
    for lesson in catalog.lessons():
        for cell in nbformat.read(lesson.solution, as_version=4).cells:
            if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
                said = cell.metadata["hookedu"]["picture"]
                assert min(len(said["zh"]), len(said["en"])) > 20, (lesson.file, cell.id)


def test_a_truth_that_cannot_be_evaluated_is_refused(clone):
    before = clone.built()
    clone.replace(GUESSES, 'truth: seen["a"].item()', 'truth: seen["b"].item()')
    with pytest.raises(BuildError, match=r"the `truth` of guess 02\.b cannot be evaluated: KeyError: 'b'"):
        build.build([clone.lesson("02")])
    assert clone.built() == before


def test_a_truth_that_was_changed_needs_a_build(clone):
    clone.replace(GUESSES, "truth: len(late)", "truth: len(late) + 1")
    (stale,) = build.check([clone.lesson("02")])
    assert (stale.file, stale.cell) == (SOLUTION, "02-cell-26-guess")


def test_a_guess_leaves_the_names_of_other_cells_and_has_that_of_the_next():
    ids = [cell.id for cell in nbformat.read(catalog.find("02").notebook, as_version=4).cells]
    asked = [id for id in ids if id.endswith("-guess")]
    assert len(asked) > 5
    for id in asked:
        assert ids[ids.index(id) + 1] == id.removesuffix("-guess")
    plain = [id for id in ids if id.startswith("02-cell-") and id not in asked]
    assert plain[0] == "02-cell-01" and plain[-1] == f"02-cell-{len(ids) - 1 - len(asked):02d}"


def test_a_change_of_prose_keeps_the_outputs_and_runs_nothing(clone):
    """Each output is marked, so that one of a fresh run would be seen."""
    marked = nbformat.read(clone.root / SOLUTION, as_version=4)
    clone.replace(SOURCE, "没有留下的梯度，还有办法", "没有留下的梯度，究竟还有办法")
    ran = []
    build.build([clone.lesson("02")], lambda lesson, place, of: ran.append((place, of)), keep_outputs=True)
    made = nbformat.read(clone.root / SOLUTION, as_version=4)
    assert ran == [(len(made.cells) - 1, len(made.cells))], "only told that it is done"
    changed = [cell.id for cell, before in zip(made.cells, marked.cells, strict=True) if cell != before]
    assert changed == ["02-cell-02"] and build.check([clone.lesson("02")]) == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (SOURCE, 'print("y.grad:", y.grad)', 'print("y.grad :", y.grad)'),
        (GUESSES, "truth: len(late)", "truth: len(late) + 1"),
        (SOLUTION, "the hook on a saw: tensor(2.)", "the hook on a saw: tensor(3.)"),
        (SOLUTION, '"cells"', '"rooms"'),
    ],
    ids=["code", "truth", "stored-output", "no-cells"],
)
def test_outputs_that_may_be_wrong_are_not_kept(clone, file, old, new):
    clone.replace(file, old, new)
    ran = []
    build.build([clone.lesson("02")], lambda lesson, place, of: ran.append(place), keep_outputs=True)
    assert len(ran) > 10 and build.check([clone.lesson("02")]) == []
    assert "tensor(3.)" not in (clone.root / SOLUTION).read_text(encoding="utf-8")


def test_an_output_that_changes_with_every_run_is_refused(clone):
    clone.replace(SOURCE, 'print("y.grad:", y.grad)', 'print("y.grad:", object())')
    with pytest.raises(BuildError, match="02-cell-03 holds a memory address"):
        build.build([clone.lesson("02")])


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
class TestEveryBuiltNotebook:
    def test_is_valid_and_knows_its_kernel(self, lesson):
        for path in (lesson.notebook, lesson.solution):
            notebook = nbformat.read(path, as_version=4)
            nbformat.validate(notebook)
            assert notebook.metadata.kernelspec.name == "python3"

    def test_the_lesson_holds_no_answer_and_no_output(self, lesson):
        notebook = nbformat.read(lesson.notebook, as_version=4)
        text = lesson.notebook.read_text(encoding="utf-8")
        assert "SOLUTION" not in text
        assert all(
            not c.outputs and c.execution_count is None for c in notebook.cells if c.cell_type == "code"
        )
        for exercise in exercises.of_lesson(lesson.id):
            cell = next(c for c in notebook.cells if c.id == exercise.slug)
            assert f'raise NotImplementedError("{STUB}")' in cell.source

    def test_the_solution_was_run_from_top_to_bottom(self, lesson):
        notebook = nbformat.read(lesson.solution, as_version=4)
        counts = [c.execution_count for c in notebook.cells if c.cell_type == "code"]
        assert counts == list(range(1, len(counts) + 1))

    def test_cells_carry_nbgraders_conventions(self, lesson):
        cells = {c.id: c for c in nbformat.read(lesson.notebook, as_version=4).cells}
        for exercise in exercises.of_lesson(lesson.id):
            answer, check = cells[exercise.slug], cells[f"{exercise.slug}-check"]
            assert answer.metadata.nbgrader.solution and not answer.metadata.nbgrader.grade
            assert check.metadata.nbgrader.grade and check.metadata.nbgrader.locked
            assert check.metadata.nbgrader.points == exercise.points

    def test_says_nothing_about_the_machine_that_built_it(self, lesson):
        for path in (lesson.notebook, lesson.solution):
            # Without the pictures, whose base64 may spell any short word.
            text = re.sub(r'("image/png": )"[^"]*"', r'\1""', path.read_text(encoding="utf-8"))
            assert str(catalog.ROOT) not in text and os.path.expanduser("~") not in text
            assert "widget-view" not in text and "iopub" not in text
            assert json.loads(text)["metadata"]["language_info"].get("version") is None
