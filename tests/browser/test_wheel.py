"""Tests of the wheel, installed outside the repository with an empty home directory.

The tests follow a learner's first days and run in order: all share one home directory.
"""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hookedu import catalog
from tests.browser.lab import Lab, newcomer, running
from tests.grading import notebooks as nb
from tests.release import artefacts, checks
from tests.release import installed as installation

pytestmark = pytest.mark.wheel

NAME = "02_tensor_hooks.ipynb"
RIGHT = "def watch(y, seen):\n    return y.register_hook(seen.append)"
FORGETS_THE_HANDLE = "def watch(y, seen):\n    y.register_hook(seen.append)"
EVERYTHING = """\
import sys
import hookedu
from hookedu.models.shapes import Shapes, load_model
net, image = load_model(), Shapes(1, seed=11)[0].image[None]
with hookedu.record(net, layers=torch.nn.Conv2d) as rec:
    net(image)
print(hookedu.__file__, "recorded:", [tuple(rec[name].activation.shape) for name in rec])
print(*sys.path)
display(hint("02.1"), solution("02.1"), progress(), hookedu.LayerPicker(net, image))"""
# Console error that Notebook 7.6 reports for every notebook, even an empty one.
NOTEBOOK_7S_OWN = "Cannot read properties of undefined (reading 'schema')"
# Correct only where it sees the package and none of the answers that the wheel contains.
SPIES = (
    "import os, sys\n"
    "found = [f for p in sys.path for *_, files in os.walk(f'{p}/hookedu') for f in files]\n"
    "assert 'capture.py' in found and not any(f.endswith('.ipynb') for f in found), found\n" + RIGHT
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel from this clone."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = artefacts.snapshot(catalog.ROOT, folder / "tree")
    return artefacts.wheel(tree, folder / "out", artefacts.last_commit(catalog.ROOT).time)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Iterator[Path]:
    """Yield the bin folder of a new environment with the wheel and, beside JupyterLab, Jupyter Notebook.

    It is removed afterwards, because pytest keeps temporary folders.
    """
    place = tmp_path_factory.mktemp("environment") / "venv"
    yield installation.environment(place, Path(sys.executable), wheel, "notebook")
    shutil.rmtree(place)


@pytest.fixture(autouse=True)
def no_pages_of_earlier_servers(browser) -> None:
    """Close old pages before a test, not after it, because a screenshot is taken at its end."""
    for page in browser.pages:
        page.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Create the home directory that all tests share."""
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def hookedu(installed, home):
    """Return a function that runs the installed command in that home directory."""

    def run(*arguments: object) -> subprocess.CompletedProcess:
        return installation.run(installed, home, "hookedu", *arguments)

    return run


def serve(installed: Path, home: Path):
    """Run the installed `hookedu lab` with its default folder."""
    return running([installed / "hookedu", "lab"], home / "hookedu-lessons", newcomer(home))


def test_it_is_small_and_carries_what_learners_and_instructors_need(wheel):
    assert wheel.stat().st_size < 8e6
    assert checks.holds_the_package_alone(wheel) == []


def test_the_doctor_says_how_to_open_it_and_building_needs_a_clone(hookedu):
    doctor = hookedu("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "All set: run `hookedu lab`" in doctor.stdout and "make" not in doctor.stdout
    build = hookedu("build", "02")
    assert (build.returncode, "needs a clone" in build.stderr) == (2, True)


def test_lesson_02_in_jupyterlab(installed, home, browser):
    with serve(installed, home) as lab:
        handed_out = {path.name for path in lab.folder.glob("*.ipynb")}
        assert handed_out == {lesson.notebook.name for lesson in catalog.lessons()}
        the_lesson_works(lab, browser)


def test_lesson_02_in_notebook_7_where_the_language_is_chosen(installed, home, browser):
    folder = home / "hookedu-lessons"
    command = [installed / "jupyter-notebook", f"--ServerApp.root_dir={folder}", "--allow-root"]
    with running(command, folder, newcomer(home), classic=True) as notebook_7:
        notebook = the_lesson_works(notebook_7, browser)
        for language in ("en", "zh"):
            notebook.choose(language)


def the_lesson_works(served: Lab, browser):
    """Check that lesson 02 runs, a wrong answer gets its message, the right one succeeds, all from the wheel."""
    notebook = served.visit(NAME, browser)
    notebook.run_all()
    assert (notebook.cell_errors(), notebook.dialogs()) == ([], [])
    for answer, outcome in ((FORGETS_THE_HANDLE, "no_handle"), (RIGHT, "correct")):
        notebook.type_into("exercise-02-1", answer)
        notebook.run("exercise-02-1")
        panel = notebook.run("exercise-02-1-check").locator(".hookedu-panel")
        assert outcome in (panel.get_attribute("data-message"), panel.get_attribute("data-outcome"))
    notebook.type_into("exercise-02-1", EVERYTHING)
    shown = notebook.run("exercise-02-1")
    expect(shown.locator(".hookedu-pane").first.get_by_role("application")).to_be_visible()
    for part in ("Hint 1 of", "Reference answer to 02.1", "seen.append"):
        expect(shown).to_contain_text(part)
    printed = shown.inner_text()
    assert "site-packages/hookedu/__init__.py recorded: [(1, " in printed
    assert str(catalog.ROOT) not in printed
    assert [e for e in notebook.console_errors if not (served.classic and e == NOTEBOOK_7S_OWN)] == []
    return notebook


def test_the_next_start_is_in_chinese_and_brings_changed_work_up_to_date(installed, home, browser):
    mine = home / "hookedu-lessons" / NAME
    work = json.loads(mine.read_text(encoding="utf-8"))
    answer = next(cell for cell in work["cells"] if cell["id"] == "exercise-02-1")["source"]
    (lesson,) = installed.parent.glob(f"lib/*/site-packages/hookedu/_course/lessons/{NAME}")
    news = lesson.read_text(encoding="utf-8").replace("一个消失的数", "新的一版")
    lesson.unlink()  # it may be a link into uv's cache, which must not change
    lesson.write_text(news, encoding="utf-8")
    with serve(installed, home) as lab:
        assert "02_tensor_hooks.ipynb 更新了" in (home / "log").read_text(encoding="utf-8")
        assert len(list(mine.parent.glob("02*"))) == 1
        cells = {cell["id"]: cell for cell in json.loads(mine.read_text(encoding="utf-8"))["cells"]}
        assert cells["exercise-02-1"]["source"] == answer
        page = lab.visit(NAME, browser).page
        expect(page.locator(".jp-Notebook").get_by_text("新的一版").first).to_be_attached()
        for word in ("文件", "编辑", "运行"):
            expect(page.locator(".lm-MenuBar-itemLabel").get_by_text(word, exact=True)).to_be_visible()


@pytest.mark.isolated
def test_it_grades_and_its_answers_stay_out_of_the_sandbox(hookedu, home):
    wrong, kept = nb.wrong("02.1", "no_handle")
    for student, answer in (("ann", RIGHT), ("bob", wrong), ("eve", SPIES)):
        nb.hand_in(home / "class" / student / NAME, nb.answered(nb.right() | {"02.1": answer}))
    run = hookedu("grade", "class", "--out", "grades")
    assert run.returncode == 0, run.stderr
    with open(home / "grades" / "grades.csv", encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    full = float(rows["ann"]["max_points"])
    assert [float(rows[s]["points"]) for s in ("ann", "eve")] == [full, full], run.stdout
    assert float(rows["bob"]["02.1"]) == kept < float(rows["ann"]["02.1"])
