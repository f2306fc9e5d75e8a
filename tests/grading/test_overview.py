"""What the class report says of mistakes: those with a name, those without, and errors."""

import pytest

from hookedu.exercises import find
from hookedu.exercises.feedback import Feedback
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import observe
from hookedu.grading.book.grades import Grade, Mark
from hookedu.grading.out.overview import Misunderstood, Overview
from hookedu.grading.rows import Result, Row, Status


def forgets_the_handle(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(lambda grad, name=name: seen.update({name: grad}))


def leaves_one_out(tensors, seen):
    return [
        tensor.register_hook(lambda grad, name=name: seen.update({name: grad}))
        for name, tensor in list(tensors.items())[:3]
        if tensor.requires_grad
    ]


def divides(tensors, seen):
    return 1 / 0


def misspells(tensors, seen):
    return tensors.itmes()


def handed_in(student: str, answer) -> Grade:
    """Return the grade of somebody who answered 02.2 so."""
    exercise = find("02.2")
    seeds = exercise.seeds(1)
    verdict = judge(exercise, observe(exercise.probe, answer, seeds), seeds)
    error = f"{verdict.error['type']}: {verdict.error['message']}" if verdict.error else ""
    result = Result(
        exercise.id,
        verdict.outcome.value,
        exercise.points,
        points=verdict.points,
        message_id=verdict.message_id,
        error=error,
        feedback=Feedback.of(verdict),
    )
    row = Row(f"{student}/02.ipynb", student, "02", "", Status.GRADED, exercise.points, results=(result,))
    return Grade(row, (Mark(result),))


@pytest.fixture(scope="module")
def mistakes() -> dict[str, Misunderstood]:
    """Return what the report shows for a class, by the id of what went wrong."""
    overview = Overview()
    answers = {
        "ann": forgets_the_handle,
        "bob": leaves_one_out,
        "cid": divides,
        "dee": misspells,
        "eve": divides,
    }
    for student, answer in answers.items():
        overview.add(handed_in(student, answer))
    return {mistake.id: mistake for mistake in overview.mistakes}


def test_a_named_mistake_speaks_for_itself(mistakes):
    named = mistakes["no_handle"]
    assert named.says == find("02.2").mistake("no_handle").says and named.example == Feedback()
    assert named.students == ["ann"] and named.tried == 5


def test_a_failure_without_a_name_shows_what_was_expected_and_what_came(mistakes):
    unnamed = mistakes["sees"]
    assert unnamed.says.en.startswith("The check `sees` failed") and "检查 `sees` 没有通过" in unnamed.says.zh
    assert unnamed.example.table and not unnamed.example.traceback


def test_errors_are_told_apart_by_their_type_and_show_where_they_arose(mistakes):
    assert mistakes["ZeroDivisionError"].students == ["cid", "eve"]
    for kind in ("ZeroDivisionError", "AttributeError"):
        assert mistakes[kind].says.en.startswith(f"It raised `{kind}`")
        assert "运行时出错" in mistakes[kind].says.zh and kind in mistakes[kind].example.traceback
