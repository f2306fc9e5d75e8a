"""Matching of damaged notebooks: which cells run, and after which cell each exercise is probed; starts no process."""

import copy
import json
import subprocess
import sys

import nbformat
import pytest

from hookedu import catalog, exercises
from hookedu.grading.matching import key_of, lesson_by_name, lesson_of, plan
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import Unreadable
from tests.grading import notebooks as nb

IDS = ("02.1", "02.2", "02.3", "02.4")


@pytest.fixture(scope="module")
def key():
    return key_of(catalog.find("02"))


def planned(notebook, key):
    """Return the plan of a notebook that has passed through JSON, and its notes in English."""
    made = plan(read_cells(json.dumps(notebook).encode()), key)
    return made, [note.en for note in made.notes]


def test_the_untouched_lesson_needs_no_run(key):
    assert planned(nb.handed_out(), key) == (plan([], key), [])


def test_blank_lines_and_trailing_blanks_are_no_change(key):
    notebook = nb.handed_out()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = "\n\n" + "".join(cell["source"]).replace("\n", "  \n\n") + "\n"
    assert planned(notebook, key)[0].steps == ()


def test_only_what_the_learner_wrote_runs_in_order(key):
    notebook = nb.before(nb.answered(nb.reference()), "02.2", [nb.code("mine = 1"), nb.code(" \n")])
    made, notes = planned(notebook, key)
    assert made.probes == IDS and notes == []
    assert [step.probes for step in made.steps] == [("02.1",), (), ("02.2",), ("02.3",), ("02.4",)]
    assert made.steps[1].source == "mine = 1"


def test_a_check_cell_without_an_answer_in_it_does_not_run(key):
    notebook = nb.answered(nb.reference())
    for cell in notebook["cells"]:
        if cell["id"].endswith("-check"):
            cell["source"] = "forged = 1"
    assert all("forged" not in step.source for step in planned(notebook, key)[0].steps)


def test_lost_metadata_is_repaired_by_cell_id_then_by_name(key):
    notebook = nb.answered(nb.reference())
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    made, notes = planned(notebook, key)
    assert made.probes == IDS
    assert notes == [f"{i}: metadata lost, found by its cell id" for i in IDS]
    for cell in notebook["cells"]:
        del cell["id"], cell["metadata"]
    made, notes = planned(notebook, key)
    assert made.probes == IDS
    assert notes[0] == "02.1: metadata lost, found by the name `watch`"


def test_an_answer_in_a_cell_of_its_own_is_found(key):
    notebook = nb.before(nb.handed_out(), "02.2", [nb.code(nb.reference()["02.1"])])
    made, notes = planned(notebook, key)
    assert made.probes == ("02.1",)
    assert notes == ["02.1: answered in another cell, found by the name `watch`"]


def test_all_answers_in_one_cell(key):
    answers = "\n\n\n".join(nb.reference().values())
    made, notes = planned({"cells": [nb.code(answers)]}, key)
    assert [step.probes for step in made.steps] == [IDS] and len(notes) == 4


def test_of_copied_cells_the_last_counts(key):
    notebook = nb.answered(nb.reference())
    copied = copy.deepcopy(nb.cell_of(notebook, "02.1")) | {
        "id": "a-copy",
        "source": "def watch(y, seen): pass",
    }
    made, notes = planned(nb.before(notebook, "02.2", [copied]), key)
    assert notes == ["02.1: 2 cells answer it; the last one counts"]
    assert [step.probes for step in made.steps[:2]] == [(), ("02.1",)]
    assert made.steps[1].source == copied["source"]


def test_an_untouched_copy_of_the_stub_counts_for_nothing(key):
    notebook = nb.answered(nb.reference())
    stub = nb.cell_of(nb.handed_out(), "02.1") | {"id": "a-copy"}
    made, notes = planned(nb.before(notebook, "02.2", [stub]), key)
    assert made.probes == IDS and notes == []


def test_a_later_scratch_definition_does_not_replace_the_answer(key):
    notebook = nb.before(nb.answered(nb.reference()), "02.3", [nb.code("def watch(y, seen): pass")])
    made, _ = planned(notebook, key)
    assert made.steps[0].probes == ("02.1",) and made.steps[2].probes == ()


@pytest.mark.parametrize("kind", ["raw", "markdown", "{weird}[b]"])
def test_a_retyped_cell_runs_as_code(key, kind):
    notebook = nb.answered(nb.reference())
    nb.cell_of(notebook, "02.1")["cell_type"] = kind
    made, notes = planned(notebook, key)
    assert made.probes == IDS
    assert notes == [f"02.1: the cell was turned into {kind}; run as code"]
    for name in ("metadata", "id"):
        for cell in notebook["cells"]:
            del cell[name]
    assert planned(notebook, key)[0].probes == IDS


def test_a_moved_cell_is_probed_where_it_stands_now(key):
    notebook = nb.answered(nb.reference())
    cell = nb.cell_of(notebook, "02.1")
    notebook["cells"].remove(cell)
    notebook["cells"].append(cell)
    assert planned(notebook, key)[0].probes == ("02.2", "02.3", "02.4", "02.1")


@pytest.mark.parametrize(
    "source",
    [
        "def watch(y, seen:\n",
        "%%time\ndef watch(y, seen): pass",
        "!ls\nclass watch: pass",
        "watch = print",
        "watch: object = print",
    ],
)
def test_definitions_are_found_in_whatever_stands_there(key, source):
    assert planned({"cells": [nb.code(source)]}, key)[0].probes == ("02.1",)


@pytest.mark.parametrize(
    "source", ["watch(1, 2)", "watch == 3", "  def watch(): pass", "def watching_it(): pass"]
)
def test_a_mention_is_no_definition(key, source):
    assert planned({"cells": [nb.code(source)]}, key)[0].probes == ()


@pytest.mark.parametrize(
    "binding",
    [
        "from mine import watch",
        "import mine as watch",
        "other, watch = mine.f, mine.g",
        "%run mine.py",
        "from mine import *",
    ],
)
def test_an_answer_that_is_imported_or_assigned_with_others_is_probed_there(key, binding):
    file = "%%writefile mine.py\ndef watch(y, seen): return y.register_hook(seen.append)"
    notebook = nb.before(nb.answered({"02.1": file}), "02.2", [nb.code("1"), nb.code(binding), nb.code("2")])
    made, _ = planned(notebook, key)
    assert [step.source for step in made.steps if step.probes] == [binding]


@pytest.mark.parametrize(
    "mention", ["print(watch, 1 == 2)", "watch(y, seen=1)", "  from mine import watch_1"]
)
def test_a_mention_elsewhere_is_no_import(key, mention):
    assert planned({"cells": [nb.code(mention)]}, key)[0].probes == ()


def test_an_edited_cell_without_a_visible_definition_is_still_the_answer(key):
    notebook = nb.answered({"02.1": "exec('def watch(y, seen): return y.register_hook(seen.append)')"})
    assert planned(notebook, key)[0].probes == ("02.1",)


def test_notebooks_of_version_3_and_other_encodings(key):
    new = nbformat.from_dict(nb.answered(nb.reference()) | {"nbformat": 4, "nbformat_minor": 5})
    old = json.dumps(nbformat.convert(new, 3), ensure_ascii=False)
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert plan(read_cells(old.encode(encoding)), key).probes == IDS


def test_cells_of_any_shape_do_no_harm(key):
    cells = [3, None, [], {}, {"source": {}}, {"source": [1, "watch = 1\n"]}, {"source": "\ud800", "id": 5}]
    cells += [{"source": "x", "metadata": {"nbgrader": {"grade_id": [1]}, "tags": 3}, "cell_type": {}}]
    made, _ = planned({"cells": cells}, key)
    assert made.probes == ("02.1",)
    json.dumps([step.source for step in made.steps]).encode()


@pytest.mark.parametrize(
    "stem",
    [
        "02_tensor_hooks",
        "02_tensor_hooks (1)",
        "02-Tensor-Hooks",
        "02",
        "02 final",
        "ann_02_tensor_hooks",
        "02_x",
    ],
)
def test_lessons_are_known_by_many_names(stem):
    assert lesson_by_name(stem).id == "02"


@pytest.mark.parametrize("stem", ["", "2", "020", "homework", "Untitled", "2026_02"])
def test_other_names_say_nothing(stem):
    assert lesson_by_name(stem) is None


def cells_of(*cells):
    return read_cells(json.dumps({"cells": list(cells)}).encode())


@pytest.mark.parametrize("named", [None, "12", "02"])
def test_what_the_cells_say_wins_over_the_file_name(named):
    named = named and catalog.find(named)
    for notebook in (nb.handed_out(), nb.answered(nb.reference())):
        lesson, notes = lesson_of(read_cells(json.dumps(notebook).encode()), named)
        assert lesson.id == "02" and len(notes) == (named is not None and named.id == "12")
        assert not notes or "says lesson 12, its cells are of lesson 02" in notes[0].en


def test_a_notebook_without_ids_is_known_by_the_names_that_it_defines():
    cells = cells_of(
        nb.code("import torch"), nb.code("def watch(y, seen): pass"), nb.code("watch_many = watch")
    )
    assert lesson_of(cells, catalog.find("12"))[0].id == "02"
    assert lesson_of(cells_of(nb.code("1")), catalog.find("12"))[0].id == "12"
    with pytest.raises(Unreadable, match="of no lesson"):
        lesson_of(cells_of(nb.code("1")), None)


def test_one_cell_of_another_lesson_changes_nothing():
    other = next(e for e in exercises.of_lesson("03"))
    notebook = nb.handed_out()
    notebook["cells"].insert(0, nb.code("1", id=other.slug))
    assert lesson_of(read_cells(json.dumps(notebook).encode()), catalog.find("03"))[0].id == "02"


def test_of_two_lessons_in_one_notebook_the_one_that_the_file_says_is_graded_and_the_other_told():
    two = cells_of(*nb.handed_out()["cells"], *(nb.code("1", id=e.slug) for e in exercises.of_lesson("03")))
    for named, other in (("02", "03"), ("03", "02")):
        lesson, notes = lesson_of(two, catalog.find(named))
        assert lesson.id == named
        assert [f"lesson {other} are in it as well" in note.en for note in notes] == [True]
    assert len(lesson_of(two, None)[1]) == 1


@pytest.mark.parametrize(
    "call",
    [
        'check("02.1", mine)  # (mine)',
        'verdict = check("02.1", mine)',
        "check(\n    '02.1',\n    mine,\n)",
        'check("02.1", answer=mine)',
        'check("02.1", mine); ',
    ],
)
def test_what_is_checked_counts_however_the_call_is_written(key, call):
    notebook = nb.answered({"02.1": "def mine(y, seen): pass"})
    nb.check_of(notebook, "02.1")["source"] = call
    made, notes = planned(notebook, key)
    assert made.probes == ("02.1",) and ["what is checked is `mine`" in note for note in notes] == [True]


def test_an_answer_in_the_check_cell_counts(key):
    notebook = nb.handed_out()
    cell = nb.check_of(notebook, "02.1")
    cell["source"] = [f"{nb.reference()['02.1']}\n", *cell["source"]]
    made, notes = planned(notebook, key)
    assert made.probes == ("02.1",) and ["another cell" in note.en for note in made.notes] == [True], notes


FINGERPRINTS = """
from hookedu import exercises
from hookedu.grading import matching
print(*(matching._fingerprint(b"", lesson) for lesson in exercises.lessons()))
"""


def fingerprints(clone) -> dict[str, str]:
    """Return what each lesson of a copy of the course is known by."""
    run = subprocess.run(
        [sys.executable, "-c", FINGERPRINTS],
        cwd=clone.root,
        env=clone.env,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(exercises.lessons(), run.stdout.split(), strict=True))


def test_a_lesson_counts_as_changed_when_anything_that_its_verdicts_depend_on_has_changed(clone):
    every = set(exercises.lessons())
    depend = {
        "hookedu/exercises/probes/lesson_05/steer.py": {"05"},
        "hookedu/exercises/checks/lesson_02/shared.py": {"02"},
        "course/02_tensor_hooks.yml": {"02"},
        "course/shared_words.yml": every,
        **{f"hookedu/exercises/{name}.py": every for name in ("judging", "probing", "feedback", "criteria")},
        **{
            f"hookedu/{name}.py": every
            for name in ("exercises/observation", "exercises/exercise", "hooks/state")
        },
        "hookedu/exercises/checks/forward_hooks.py": {"05", "09", "10", "11", "12", "13", "14", "15"},
        "hookedu/plots/maps.py": set(),
        "hookedu/grading/batch.py": set(),
    }
    before = fingerprints(clone)
    assert len(set(before.values())) == len(before)
    for file, lessons in depend.items():
        path = clone.root / file
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "# changed\n", encoding="utf-8")
        after = fingerprints(clone)
        path.write_text(text, encoding="utf-8")
        changed = {lesson for lesson in before if after[lesson] != before[lesson]}
        assert changed == lessons, file


def test_fences_without_an_end_take_no_longer_than_their_length(key):
    text = {"cell_type": "markdown", "source": "```a\n" * 100_000, "metadata": {}}
    code = """
import sys, json
from hookedu import catalog
from hookedu.grading.matching import key_of, plan
from hookedu.grading.reading import read_cells
plan(read_cells(sys.stdin.buffer.read()), key_of(catalog.find("02")))
"""
    # A process of its own, because a regular expression that runs holds the interpreter.
    notebook = json.dumps({"cells": [text]}).encode()
    subprocess.run([sys.executable, "-c", code], input=notebook, check=True, timeout=60)


def test_of_a_cell_of_text_the_fenced_code_counts(key):
    notebook = nb.answered(nb.right())
    cell = nb.cell_of(notebook, "02.1")
    answer = cell["source"]
    cell |= {
        "cell_type": "markdown",
        "source": f"Mine:\n```python\n{answer}\n```  \nand\n```\nmore = 1\n```\n```\nopen",
    }
    step = next(step for step in planned(notebook, key)[0].steps if "02.1" in step.probes)
    assert step.source == f"{answer}\n\nmore = 1\n"
