"""Tests of the pages that have a file for each language: both say the same, links have targets, commands run.

The ```bash blocks of a guide's English file run in order, in one copy of the repository with a small class of
submissions. A block is left out only if `<!-- not run: reason -->` is on the line above it.
"""

import csv
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookedu import catalog
from hookedu.authoring import pages
from hookedu.grading.rows import Status
from hookedu.language import has_chinese
from tests.conftest import Clone
from tests.grading import notebooks as nb
from tests.grading.classroom import make_class
from tests.release.links import broken_in_page

_FOUND = [*sorted((catalog.ROOT / "course" / "guides").glob("*.md")), *catalog.ROOT.glob("*.zh.md")]
# The English file of every page, also where only the Chinese one is there.
PAGES = {name: path.with_name(name) for path in _FOUND for name in [path.name.replace(".zh.md", ".md")]}
GUIDES = [name for name in PAGES if name != "README.md"]
# Number of blocks per guide that are not run.
LEFT_OUT = {"CONTRIBUTING.md": 1, "authors.md": 3, "hubs.md": 3, "instructors.md": 2, "widgets.md": 0}
_BLOCK = re.compile(r"^(?:<!-- not run: *(.*?) *-->\n)?```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)

of_every_page = pytest.mark.parametrize("page", PAGES)


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the blocks of a page as pairs of the reason why a block is not run, or "", and its commands."""
    return _BLOCK.findall(PAGES[page].read_text(encoding="utf-8"))


def hand_out_class(folder: Path) -> None:
    """Create a class of six submissions, of which two are named ann and bob, as in the guides."""
    expected = make_class(folder, 6)
    graded = [student for student, row in expected.items() if row.status is Status.GRADED]
    for student, name in zip(graded, ("ann", "bob"), strict=False):
        (folder / student).rename(folder / name)


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Return a function that runs a page's commands, once per module.

    It returns the copy of the repository and the completed process of each block.
    """

    @functools.cache
    def walk(page: str) -> tuple[Clone, list[subprocess.CompletedProcess]]:
        clone = Clone(tmp_path_factory.mktemp("guide") / "clone", whole=True)
        hand_out_class(clone.root / "submissions")
        env = {name: value for name, value in clone.env.items() if not name.startswith("PYTEST_")}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        env["XDG_DATA_HOME"] = str(clone.root.parent / "home")
        options = {"cwd": clone.root, "env": env, "encoding": "utf-8", "timeout": 300}
        ran = [
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code],
                **options,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for reason, code in blocks(page)
            if not reason
        ]
        return clone, ran

    return walk


@of_every_page
def test_both_languages_say_the_same(page):
    assert [str(problem.text) for problem in pages.problems(PAGES[page])] == []


@of_every_page
def test_links_lead_somewhere(page):
    for path in (PAGES[page], pages.chinese_of(PAGES[page])):
        assert broken_in_page(path) == []


@of_every_page
def test_a_chinese_page_says_which_pages_there_are_in_english_only(page):
    path = pages.chinese_of(PAGES[page])
    for link, after in re.findall(r"\]\(([^)#:]+)[^)]*\)(.{0,4})", path.read_text(encoding="utf-8")):
        target = path.parent / link
        other_side = target.name == PAGES[page].name or target.suffix not in (".md", "")
        if not other_side and target.is_file() and not has_chinese(target.read_text(encoding="utf-8")):
            assert after == "（英文）", link


@pytest.mark.parametrize("page", GUIDES)
def test_only_what_cannot_be_run_is_left_out(page):
    reasons = [reason for reason, _ in blocks(page) if reason]
    assert len(reasons) == LEFT_OUT[page] and all(len(reason) > 20 for reason in reasons), reasons
    assert len(reasons) < len(blocks(page)) == PAGES[page].read_text(encoding="utf-8").count("```bash")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.xdist_group(f"guide-{name}"),
                *([pytest.mark.isolated] if any("hookedu grade" in code for _, code in blocks(name)) else []),
            ],
        )
        for name in GUIDES
    ],
)
def test_every_command_runs(page, walk):
    for done in walk(page)[1]:
        assert done.returncode == 0, f"{done.args[-1]}\n{done.stdout}"
        assert "Traceback" not in done.stdout and "reformatted" not in done.stdout


@pytest.mark.isolated
@pytest.mark.xdist_group("guide-instructors.md")
def test_the_instructors_end_with_grades_and_without_bob(walk):
    clone, _ = walk("instructors.md")
    grades = clone.root / "grades"
    assert (grades / "feedback" / "ann.html").exists() and (grades / "report.html").exists()
    assert len({row["student"] for row in _rows(grades)}) == 5 and "bob" not in str(_rows(grades))


@pytest.mark.isolated
@pytest.mark.xdist_group("guide-authors.md")
def test_the_lesson_that_authors_begin_with_is_graded(walk):
    """The lesson is graded as generated; the commands of the guide have built and tested it."""
    clone, ran = walk("authors.md")
    assert any(re.search(r"^\d\d passed", done.stdout, re.MULTILINE) for done in ran), "tests of lesson 20"
    for student, kind in (("ann", "solutions"), ("bob", "lessons")):
        content = (clone.root / kind / "20_my_topic.ipynb").read_bytes()
        nb.hand_in(clone.root / "class" / student / "20_my_topic.ipynb", content)
    done = clone.hookedu("grade", "class", "--out", "of-20")
    assert done.returncode == 0, done.stderr
    rows = [
        (row["student"], row["20.1"], row["max_points"], row["status"]) for row in _rows(clone.root / "of-20")
    ]
    assert rows == [("ann", "3", "3", "graded"), ("bob", "0", "3", "not_attempted")]


def _rows(grades: Path) -> list[dict[str, str]]:
    with open(grades / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
