"""Tests of the learner API: check, hint and solution."""

import ast
import contextlib
import re
import shutil
import sys

import nbformat
import pytest
import torch

from hookedu import catalog, check, course_map, exercises, hint, progress, solution, storage
from hookedu.catalog import CourseError
from hookedu.exercises import Outcome
from hookedu.learner import checking
from tests.answers import answers


def right(y, seen):
    return y.register_hook(seen.append)


def wrong(y, seen):
    y.register_hook(seen.append)


def untouched(y, seen):
    raise NotImplementedError("在这里写你的代码 · your code here")


@pytest.fixture(autouse=True)
def from_the_first_hint(monkeypatch):
    monkeypatch.setattr(checking, "_hints_given", {})


def test_check_says_what_came_of_it_and_remembers():
    assert check("02.1", right).outcome is Outcome.CORRECT
    verdict = check("02.1", wrong)
    assert (verdict.outcome, verdict.message_id) == (Outcome.PARTLY, "no_handle")
    assert [(r["exercise"], r["message"]) for r in storage.read_records("checks")] == [
        ("02.1", "correct"),
        ("02.1", "no_handle"),
    ]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_feedback_carries_both_languages(lang):
    page = check("02.1", wrong)._repr_html_()
    assert f'<div lang="{lang}">' in page and f'<span lang="{lang}">' in page


def test_check_never_raises_for_a_mistake():
    said = check("02.9", right)
    assert "nearest" in repr(said) and re.search(r"`\d\d\.\d`", repr(said))
    assert 'check("02.1", watch)' in repr(check("02.1"))
    assert "its type is `int`" in repr(check("02.1", 3))
    assert "its type is `str`" in repr(check("02.1", "watch"))
    for said in (hint("02.9"), solution("02.9")):
        assert "nearest" in repr(said)


def test_without_a_number_they_ask_for_it():
    for said in (
        check(),
        check(right),
        check("nonsense", right),
        check(None, right),
        hint(),
        hint(right),
        solution(),
    ):
        assert '`"02.1"`' in said.says.en and '`"02.1"`' in said.says.zh
        assert "0x" not in repr(said), "the address of a function tells nobody what to do"


@pytest.mark.parametrize(
    ("call", "write"),
    [
        (lambda: check("02.1", right, 3), 'check("02.1", watch)'),
        (lambda: check(exercise="02.1"), 'check("02.1", watch)'),
        (lambda: hint("02.1", 1, 2), 'hint("02.1", 2)'),
        (lambda: solution("02.1", True, 3), 'solution("02.1")'),
        (lambda: progress("02.1"), "progress()"),
        (lambda: course_map("02"), "course_map()"),
        (lambda: hint("02.1", "2"), 'hint("02.1", 1)'),
        (lambda: hint("02.1", 2.5), 'hint("02.1", 1)'),
    ],
)
def test_a_call_that_cannot_be_made_says_what_to_write(call, write):
    said = call().says
    assert f"`{write}`" in said.zh and f"`{write}`" in said.en


def test_inside_nbgrader_a_call_that_cannot_be_made_is_no_full_mark(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(TypeError):
        check("02.1", right, 3)


def test_inside_nbgrader_the_value_is_the_points(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert (check("02.1", right), check("02.1", wrong), check("02.1", untouched)) == (3, 2, 0)
    assert storage.read_records("checks") == [], "an instructor's run is nobody's progress"


def test_inside_nbgrader_noise_costs_nothing_and_no_verdict_means_no_points(monkeypatch, capsys):
    """Nbgrader gives 0 points to a cell that writes to stderr, and full points if the value is no number."""

    def noisy(y, seen):
        print("oops", file=sys.stderr)
        return y.register_hook(seen.append)

    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert (check("02.1", noisy), check("02.1", wrong)) == (3, 2)
    assert capsys.readouterr().err == ""
    with pytest.raises(CourseError, match="nearest"):
        check("02.9", right)


def test_nbgrader_validate_is_told_what_is_missing(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    assert check("02.1", right) == 3
    assert capsys.readouterr().err == ""
    assert check("02.1", wrong) == 2
    assert "not the handle itself" in capsys.readouterr().err


def test_hints_come_one_after_the_other_and_stay_at_the_last():
    exercise = exercises.find("02.1")
    said = [hint("02.1").says for _ in range(len(exercise.hints) + 1)]
    assert said == [*exercise.hints, exercise.hints[-1]]
    assert hint("02.1", 1).says == exercise.hints[0]
    assert hint("02.1", 99).says == exercise.hints[-1]


@pytest.mark.parametrize("exercise", ["00.1", "02.1", "15.4"])
def test_the_last_hint_says_that_it_is_nearly_the_answer_before_it_opens(exercise):
    of = len(exercises.find(exercise).hints)
    for number in range(1, of):
        assert "<details" not in hint(exercise, number)._repr_html_()
    before, _, opened = hint(exercise, of)._repr_html_().partition("</summary>")
    assert "<details>" in before and "nearly the whole answer" in before and "几乎就是答案" in before
    assert "Click" not in before and "点开" not in before, "it says the same while it is open"
    assert exercises.find(exercise).hints[-1].html() in opened


def test_a_solution_is_shown_after_a_try():
    assert "register_hook" not in repr(solution("02.1"))
    check("02.1", untouched)
    assert "register_hook" not in repr(solution("02.1")), "the stub is no try"
    check("02.1", wrong)
    shown = solution("02.1")
    assert "register_hook" in shown.code and "SOLUTION" not in shown.code
    assert shown.code in shown._repr_markdown_() and shown.code in repr(shown)


@pytest.mark.parametrize(
    "exercise", [e for le in exercises.lessons() for e in exercises.of_lesson(le)], ids=lambda e: e.id
)
def test_every_exercise_has_a_solution_that_is_code(exercise):
    shown = solution(exercise.id, anyway=True)
    assert exercise.answer in [getattr(n, "name", None) for n in ast.parse(shown.code).body]


@contextlib.contextmanager
def of_float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("notebook", [of_float64, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("lesson", exercises.lessons())
def test_what_a_notebook_has_set_changes_no_verdict(lesson, notebook):
    for exercise in exercises.of_lesson(lesson):
        right = next(a for a in answers() if a.exercise == exercise.id and a.mistake is None)
        answer = right.fresh()
        with notebook():
            verdict = check(exercise.id, answer)
        assert verdict.outcome is Outcome.CORRECT, verdict


def test_a_right_answer_links_to_what_comes_next_if_it_is_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", "lesson.ipynb")  # as in a kernel of JupyterLab
    right = {a.exercise: a.fresh() for a in answers() if a.exercise.startswith("02.") and a.mistake is None}
    *_, before_last, last = sorted(right)

    def links(id, answer):
        return re.findall('<a href="(.*?)"', check(id, answer)._repr_html_())

    assert links(last, right[last]) == []
    for number in ("02", "03"):
        shutil.copy(catalog.find(number).notebook, tmp_path)
    assert links(last, right[last]) == ["03_changing_gradients.ipynb"]
    assert links(last, wrong) == []
    (to_task,) = links(before_last, right[before_last])
    place, _, cell = to_task.partition("#cell-id=")
    (task,) = (c.source for c in nbformat.read(place, as_version=4).cells if c.id == cell)
    assert f"Exercise {last}" in task
