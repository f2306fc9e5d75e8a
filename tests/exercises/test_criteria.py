"""Tests of checks as a table: which row fails, which mistake is named, and what its message shows."""

import contextlib
import dataclasses

import pytest
import torch

from hookedu.exercises import Check, Gives, Say, find
from hookedu.exercises.criteria import UnknownField
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import ObservationError, Opaque
from hookedu.exercises.probing import Draw
from hookedu.exercises.words import WordsError
from hookedu.language import Text

WORDS = {
    "left": Text(zh="留下 {value} 个", en="{value} left"),
    "named": Text(zh="{who}：{saw.got}", en="{who}: {saw.got}"),
}


def judged(check: Check, got, key=2, given="x = {key}"):
    criterion = check.judged({"got": got}, key, key, given, WORDS)
    _ = criterion.given, criterion.expected, criterion.got  # written on demand: a defect shows here
    return criterion


def test_a_row_compares_an_observation_with_what_is_wanted():
    row = Check("equals", "got", lambda key: key, points=3, essential=True)
    passed, failed = judged(row, 2), judged(row, 5)
    assert (passed.passed, passed.points, passed.essential, passed.got) == (True, 3, True, "")
    assert (failed.passed, failed.given, failed.expected, failed.got) == (
        False,
        "x = 2",
        "got == 2",
        "got == 5",
    )


def test_the_first_condition_that_holds_names_the_mistake():
    mistakes = {"none": lambda saw, key: saw.got is None, "twice": Gives(lambda key: 2 * key), "other": True}
    row = Check("equals", "got", lambda key: key, mistakes=mistakes)
    assert [judged(row, got).mistake for got in (2, None, 4, 7)] == [None, "none", "twice", "other"]


@pytest.mark.parametrize("odd", [None, "text", [1], {"a": 1}, 10**30, Opaque("set"), torch.ones(2, 3)])
def test_what_is_written_for_the_right_kind_does_not_hold_for_another(odd):
    row = Check(
        "sum",
        ok=lambda saw, key: saw.got["values"].sum() > key,
        expected="more than {key}",
        got="{saw.got[values]}",
        mistakes={"negative": lambda saw, key: saw.got["values"] < 0},
    )
    found = judged(row, odd)
    assert (found.passed, found.mistake, found.expected) == (False, None, "more than 2")


def test_an_equal_that_raises_is_not_equal():
    row = Check("close", "got", lambda key: torch.ones(2), equal=torch.equal)
    assert not judged(row, "text").passed


def test_words_are_filled_in():
    row = Check("left", "got", lambda key: 0, expected=Say("left"), got=Say("left"))
    found = judged(row, 3)
    assert (found.expected.en, found.got.en, found.got.zh) == ("0 left", "3 left", "留下 3 个")
    row = Check("left", "got", lambda key: 0, got=Say("named", who=lambda saw, key: f"key {key}"))
    assert judged(row, [1, 2]).got.en == "key 2: [1, 2]"


def test_of_several_ways_to_say_it_the_first_that_holds_is_taken():
    lines = [Say("left", when=lambda saw, key: saw.got > 9), lambda saw, key: f"only {saw.got}"]
    row = Check("left", "got", lambda key: 0, got=lines)
    assert judged(row, 10).got.en == "10 left" and judged(row, 3).got == "only 3"


def test_an_observation_that_is_missing_is_no_wrong_answer():
    for row in (
        Check("missing", "gone", lambda key: 1),
        Check("missing", ok=lambda saw, key: saw.gone == 1, expected="a", got="b"),
        Check("missing", "got", lambda key: 0, got="{saw.gone}"),
    ):
        with pytest.raises(ObservationError, match="gone"):
            judged(row, 3)


@pytest.mark.parametrize("line", ["{case.nope}", "{key.nope}", "{wnat}", "{n}"])
def test_a_misspelt_field_is_a_defect_of_the_exercise(line):
    with pytest.raises(UnknownField):
        judged(Check("line", "got", lambda key: 0, expected=line), 3)


def test_a_misspelt_name_of_the_key_is_a_defect_of_the_exercise():
    with pytest.raises(AttributeError, match="nope"):
        judged(Check("key", ok=lambda saw, key: saw.got == key.nope, expected="a", got="b"), 3)


@pytest.mark.parametrize(
    "checks",
    [
        [Check("bare", expected="a", got="b")],
        [Check("bare", want=lambda key: 1)],
        [
            Check(
                "bare", ok=lambda saw, key: True, expected="a", got="b", mistakes={"m": Gives(lambda key: 1)}
            )
        ],
        [Check("twice", "got", lambda key: 1), Check("twice", "got", lambda key: 1)],
    ],
    ids=["nothing", "no observation", "Gives without one", "an id twice"],
)
def test_a_check_that_decides_nothing_is_refused(checks):
    with pytest.raises(WordsError, match=f"02.1: checks: {checks[0].id}: It decides nothing"):
        dataclasses.replace(find("02.1"), checks=checks)


def test_a_case_that_does_not_suit_is_not_judged():
    exercise = dataclasses.replace(find("02.1"), suits=lambda case: case.k > 3 or case.k <= 1)
    seeds = [exercise.seeds(n)[0] for n in range(50)]
    assert all(exercise.probe.case(Draw.of(seed, 0)).k > 3 for seed in seeds)
    assert len(set(seeds)) > 40, "neighbours do not meet in one case"
    unsuited = next(n for n in range(50) if exercise.seeds(n)[0] != n)
    with pytest.raises(ValueError, match="does not suit"):
        judge(exercise, {"status": "observed", "observations": [{"dict": []}] * 5}, [unsuited] * 5)


def test_whether_a_case_suits_is_asked_once_by_seeds_and_judge_together(monkeypatch):
    asked = []
    exercise = dataclasses.replace(find("02.1"), suits=lambda case: asked.append(case.k) or True)
    seeds = exercise.seeds(0)
    record = {"status": "observed", "observations": [{"dict": []}] * len(seeds)}
    with contextlib.suppress(ObservationError):
        judge(exercise, record, seeds)
    assert len(asked) == len(seeds)
    monkeypatch.setattr("hookedu.exercises.exercise._MAX_KNOWN", 2)
    assert [exercise.seeds(n)[0] for n in range(5)] == [*range(5)] and len(exercise._suiting) <= 2


def test_an_exercise_without_a_case_that_suits_says_so_instead_of_looking_for_ever():
    exercise = dataclasses.replace(find("02.1"), suits=lambda case: case.k > 99)
    with pytest.raises(RuntimeError, match=r"02\.1.*turn 0"):
        exercise.seeds(0)
