"""Guesses: what an entry may hold, how an answer is read and judged, what is kept, and all those of the lessons."""

import ast

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hookedu import catalog, guess, guesses, progress
from hookedu.authoring import code_words
from hookedu.guesses import GuessError, Question
from hookedu.language import Text, preference

WORDS = {"zh": "是什么？", "en": "What is it?"}
NUMBER = {"question": WORDS, "kind": "number", "truth": "len(seen)"}
CHOICE = NUMBER | {"kind": "choice", "choices": {"a": WORDS, "b": WORDS}, "truth": "'a'"}
LINE = NUMBER | {"kind": "text", "truth": "'loss.backward'"}


def made(node: dict, tmp_path, id: str = "02.a", text: str = "") -> Question:
    path = tmp_path / "02_tensor_hooks.guesses.yml"
    path.write_text(text or yaml.safe_dump({id: node}, allow_unicode=True), encoding="utf-8")
    return guesses.load(path)[id]


@pytest.mark.parametrize(
    ("node", "id", "says"),
    [
        (NUMBER, "02.1", "reads like `02.a`"),
        (NUMBER, "03.a", "reads like `02.a`"),
        (NUMBER | {"kind": "colour"}, "02.a", "needs `question`"),
        (NUMBER | {"truth": 3}, "02.a", "needs `question`"),
        (NUMBER | {"choices": CHOICE["choices"]}, "02.a", "the others none"),
        (CHOICE | {"choices": {"a": WORDS}}, "02.a", "two `choices` at least"),
        (CHOICE | {"choices": {"yes": WORDS, False: WORDS}}, "02.a", "must be text"),
        (CHOICE | {"choices": {1: WORDS, 2: WORDS}}, "02.a", "must be text"),
        (NUMBER | {"hint": WORDS}, "02.a", "needs `question`"),
        (NUMBER | {"question": {"zh": "只有中文"}}, "02.a", "`en` is missing"),
        (
            CHOICE | {"choices": {"a": WORDS, "b": {"en": "x", "zh": " "}}},
            "02.a: choices: b",
            "`zh` is missing",
        ),
        (NUMBER | {"because": None}, "02.a: because", "`zh` is missing"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(tmp_path, node, id, says):
    with pytest.raises(GuessError) as caught:
        made(node, tmp_path, id.partition(":")[0])
    assert f"course/02_tensor_hooks.guesses.yml: {id}: " in str(caught.value) and says in str(caught.value)


def test_an_id_stands_once(tmp_path):
    text = yaml.safe_dump({"02.a": NUMBER}, allow_unicode=True)
    with pytest.raises(GuessError, match="used once"):
        made({}, tmp_path, text=text * 2)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_as_it_is_written_and_is_right(number):
    asked = Question("02.a", Text("?", "?"), "number", "x", {}, None)
    said = asked.read(f" {number!r} ")
    assert said == number and asked.is_right(said, asked.truth_in({"x": number}))


@given(st.integers(-99, 99), st.integers(1, 99))
def test_fractions_are_numbers(above, below):
    asked = Question("02.a", Text("?", "?"), "number", "x", {}, None)
    said = asked.read(f"{above} / {below}")
    assert said is not None and asked.is_right(said, asked.truth_in({"x": torch.tensor(above / below)}))
    assert not asked.is_right(said, above / below + 1)


@given(st.text())
def test_whatever_is_typed_is_read_or_refused(typed):
    for kind in guesses.KINDS:
        asked = Question("02.a", Text("?", "?"), kind, "x", {"a": Text("甲", "a")}, None)
        said = asked.read(typed)
        assert said is None or asked.show(said).en


@pytest.mark.parametrize("typed", ["Loss.Backward", " 'loss.backward' ", "`loss.backward`"])
def test_a_text_need_not_match_in_capitals_quotes_and_spaces(tmp_path, typed):
    asked = made(LINE, tmp_path)
    assert asked.is_right(asked.read(typed), asked.truth_in({}))
    assert not asked.is_right(asked.read("loss"), asked.truth_in({}))


@pytest.mark.parametrize(
    ("node", "truth", "error"),
    [
        (NUMBER, "None", TypeError),
        (NUMBER, "seen", NameError),
        (CHOICE, "'c'", TypeError),
        (LINE, "3", TypeError),
    ],
)
def test_a_truth_of_the_wrong_type_raises(tmp_path, node, truth, error):
    with pytest.raises(error):
        made(node | {"truth": truth}, tmp_path).truth_in({})


def test_finding_the_truth_is_unheard(tmp_path, capsys, recwarn):
    y = torch.ones(2, requires_grad=True) * 2
    asked = made(CHOICE | {"truth": "print(1) or ('a' if y.grad is None else 'b')"}, tmp_path)
    assert asked.truth_in({"y": y}) == "a"
    assert capsys.readouterr().out == "" and not recwarn.list


def test_the_first_guess_counts_and_only_known_ones():
    assert guesses.score() == {} and progress().guessed is None
    first, other = guesses.find("02.b"), guesses.find("02.d")
    gone = Question("02.z", first.question, "number", "1", {}, None)
    for asked, right in ((first, False), (first, True), (other, True), (gone, True)):
        guesses.note(asked, 1.0, 2.0, right)
    assert guesses.score() == {"02.b": False, "02.d": True}
    assert progress().guessed == Text(zh="猜过 2 次，猜对 1 次", en="1 of 2 guesses right")
    assert "1 of 2 guesses right" in repr(progress()) and ">1/2<" in progress()._repr_html_()


@pytest.mark.parametrize("id", ["02.zz", "99.a", "2", "", None, 2.1, ["02.a"]])
def test_a_guess_that_does_not_exist_says_how_ids_read(id):
    preference.language = "en"
    said = repr(guess(id))
    preference.language = "zh"
    assert "02.a" in said and "02.a" in repr(guess(id)) != said


def test_a_guess_without_an_id_asks_for_it_and_one_with_full_width_digits_is_found():
    assert 'guess("02.a")' in repr(guess())
    assert repr(guess("０２.ａ")) == "guess 02.a"


def test_without_the_words_of_the_course_a_guess_is_silent(monkeypatch, tmp_path):
    """The sandbox of the grader does not see the course."""
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    catalog.lessons.cache_clear()
    guesses._loaded.cache_clear()
    try:
        silent = guess("02.a")
        assert repr(silent) == "guess 02.a" and not hasattr(silent, "comm")
    finally:
        catalog.lessons.cache_clear()


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_a_truth_compares_with_no_words_that_are_others_in_chinese(lesson):
    """The truths are evaluated in a notebook of either language."""
    translated = code_words.words_of(lesson)
    for asked in guesses.load(lesson.source.with_suffix(".guesses.yml")).values():
        parts = ast.walk(ast.parse(asked.truth.strip(), mode="eval"))
        texts = {part.value for part in parts if isinstance(part, ast.Constant)} - set(asked.choices)
        assert texts.isdisjoint(translated), asked.id
