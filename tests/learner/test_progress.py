"""Tests of `progress()`: outcomes of exercises, the next exercise, and links to notebooks."""

import shutil
from html.parser import HTMLParser

import nbformat
import pytest

from hookedu import catalog, check, exercises, progress, storage
from hookedu.exercises import Outcome
from tests.learner.test_checking import right, untouched, wrong

ALL = [e.id for lesson in catalog.lessons() for e in exercises.of_lesson(lesson.id)]


class Picture(HTMLParser):
    """Parser of the HTML: attributes, text and link of each exercise, and the text of each link."""

    def __init__(self, page: str):
        super().__init__()
        self.exercises: dict[str, dict[str, str]] = {}
        self.links: dict[str, str] = {}
        self._href = self._here = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "a":
            self._href = attributes["href"]
        if "data-exercise" in attributes:
            self._here = self.exercises[attributes["data-exercise"]] = attributes | {
                "href": self._href,
                "text": "",
            }

    def handle_endtag(self, tag):
        if tag == "a":
            self._href = None
        if tag == "td":
            self._here = None

    def handle_data(self, data):
        if self._here is not None:
            self._here["text"] += data
        if self._href is not None:
            self.links[self._href] = self.links.get(self._href, "") + data


def solve(*ids: str) -> None:
    """Append the record of a correct check for each exercise."""
    for exercise_id in ids:
        storage.append_record("checks", {"exercise": exercise_id, "outcome": "correct"})


def test_it_keeps_the_best_outcome():
    assert (progress().solved, "0 of" in repr(progress())) == (0, True)
    for answer in (untouched, wrong, right, wrong):
        check("02.1", answer)
    seen = progress()
    assert (seen.solved, seen.best["02.1"], seen.tries["02.1"]) == (1, Outcome.CORRECT, 3)
    assert "1 of" in repr(seen)


def test_it_reads_over_records_of_another_version():
    for record in (
        {},
        {"exercise": "77.1", "outcome": "correct"},
        {"exercise": "02.1", "outcome": "splendid"},
    ):
        storage.append_record("checks", record)
    assert progress().solved == 0


def test_it_says_when_it_cannot_be_saved(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "data"))
    assert check("02.1", right).outcome is Outcome.CORRECT
    assert "cannot be saved" in repr(progress())


def test_each_outcome_stands_in_its_cell_and_no_other():
    check("02.1", right)
    check("02.2", untouched)
    check("02.3", lambda y, seen: 1 / 0)
    check("02.4", 3)
    check("01.3", untouched)
    shown = Picture(progress()._repr_html_()).exercises
    assert list(shown) == ALL
    outcomes = {name: cell["data-outcome"] for name, cell in shown.items()}
    tried = {"02.1": "correct", "02.3": "raised", "02.4": "incorrect"}
    assert outcomes == dict.fromkeys(ALL, "not_attempted") | tried
    text = shown["02.1"]["text"]
    for said in ("✓", "02.1 监视一个梯度：正确，试过 1 次", "02.1 Watch one gradient: Correct, tries: 1"):
        assert said in text
    assert "Watch one gradient" in shown["02.1"]["title"] and "监视一个梯度" in shown["02.1"]["title"]
    assert "02  ✓ ○ ⚠ ✗ " in repr(progress())


@pytest.mark.parametrize(
    ("solved", "then", "expected"),
    [
        ([], None, "00.1"),
        (["00.1", "01.1"], None, "01.2"),
        (["00.1", "01.4"], None, "02.1"),  # continues after the last attempt and skips 01.1
        (["00.1"], "02.1", "02.1"),  # tried, not solved
        (ALL[:3] + ALL[4:], None, ALL[3]),  # after the last exercise, the skipped one
    ],
)
def test_what_is_next(solved, then, expected):
    solve(*solved)
    if then:
        check(then, wrong)
    check("05.1", untouched)  # as "Run All" does; this is no attempt
    assert progress().next.id == expected
    marked = [
        name for name, cell in Picture(progress()._repr_html_()).exercises.items() if "aria-current" in cell
    ]
    assert marked == [expected]
    assert f"Next: {expected} " in repr(progress()) and f"接下来：{expected} " in repr(progress())


def test_when_all_is_solved_nothing_is_next():
    solve(*ALL)
    assert (progress().next, progress().solved) == (None, len(ALL))
    assert "All done" in repr(progress()) and "aria-current" not in progress()._repr_html_()


def test_links_lead_to_the_notebooks_that_lie_beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", "lesson.ipynb")  # as in a kernel of JupyterLab
    assert Picture(progress()._repr_html_()).links == {}
    for number in ("00", "02"):
        shutil.copy(catalog.find(number).notebook, tmp_path)
    (tmp_path / "03_changing_gradients.ipynb").write_text("not a notebook")
    (tmp_path / "04_which_gradient.ipynb").write_text("[]")
    picture = Picture(progress()._repr_html_())
    assert {href.partition("#")[0] for href in picture.links} == {
        "00_start_here.ipynb",
        "02_tensor_hooks.ipynb",
    }
    assert "Tensor hooks" in picture.links["02_tensor_hooks.ipynb"]
    assert {picture.exercises[f"02.{n}"]["href"] for n in (1, 2, 3)} == {"02_tensor_hooks.ipynb"}, (
        "not begun: the task would stand there without what it needs"
    )
    check("02.1", wrong)
    picture = Picture(progress()._repr_html_())
    assert "#" not in picture.exercises["00.1"]["href"]
    place, _, cell = picture.exercises["02.3"]["href"].partition("#cell-id=")
    notebook = nbformat.read(tmp_path / place, as_version=4)
    (task,) = (c.source for c in notebook.cells if c.id == cell)
    assert "Exercise 02.3" in task
    assert "Next: 02.1" in picture.links[picture.exercises["02.1"]["href"]]
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert Picture(progress()._repr_html_()).links == {}, "nbval, nbconvert: nothing could follow a link"


def test_in_the_notebook_that_is_running_every_link_leads_to_a_cell(tmp_path, monkeypatch):
    """Without a cell JupyterLab would do nothing: the notebook is open."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "02_tensor_hooks.ipynb"))
    for number in ("02", "03"):
        shutil.copy(catalog.find(number).notebook, tmp_path)
    cells = [cell.id for cell in nbformat.read("02_tensor_hooks.ipynb", as_version=4).cells]
    picture = Picture(progress()._repr_html_())
    assert "Tensor hooks" in picture.links[f"02_tensor_hooks.ipynb#cell-id={cells[0]}"]
    task = picture.exercises["02.1"]["href"].removeprefix("02_tensor_hooks.ipynb#cell-id=")
    assert task in cells[1:], "not begun, but it is open"
    assert picture.exercises["03.1"]["href"] == "03_changing_gradients.ipynb"


def test_a_line_that_a_full_disk_has_cut_spoils_no_other():
    storage.append_record("checks", {"exercise": "02.1", "said": "\ud800"})
    path = storage.folder() / "checks.jsonl"
    path.write_bytes(path.read_bytes() + b'{"exercise"')
    storage.append_record("checks", {"exercise": "02.2"})
    assert [record["exercise"] for record in storage.read_records("checks")] == ["02.1", "02.2"]


def test_what_is_nested_too_deep_is_no_record_and_no_setting():
    storage.append_record("checks", {"exercise": "02.1"})
    for name in ("checks.jsonl", "settings.json"):
        with open(storage.folder() / name, "ab") as file:
            file.write(b"[" * 100_000)
    assert len(storage.read_records("checks")) == 1 and storage.load_settings() == {}
