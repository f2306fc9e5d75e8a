"""Test every exercise with right answers, wrong answers and the stub: a wrong verdict is the worst defect."""

import gc
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hookedu import catalog
from hookedu.exercises import Outcome, UnknownExercise, find, lessons, of_lesson
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import MAX_BYTES, ObservationError, decode, dumps, encode, loads
from hookedu.exercises.probing import STUB, Draw, describe_error, observe
from tests.answers import Answer, answers, messages, verdict_on

EXERCISES = [exercise for lesson in lessons() for exercise in of_lesson(lesson)]
ANSWERS = answers()


SEEDS = (0, 987654321)  # first seeds; each check tries several cases. `make mutants` tries 200


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda a: a.name)
def test_every_answer_gets_its_verdict(answer: Answer):
    exercise = find(answer.exercise)
    if answer.mistake is None:
        # What is checked with a single case trains or compiles, for seconds.
        for seed in SEEDS if exercise.probe.cases > 1 else SEEDS[:1]:
            verdict = messages.verdict(answer, seed)
            assert (verdict.outcome, verdict.points) == (Outcome.CORRECT, exercise.points), (seed, verdict)
            assert all(c.given and c.expected for c in verdict.criteria[: len(exercise.checks)])
            assert sum(c.points for c in verdict.criteria) == exercise.points
        return
    verdict = messages.verdict(answer, SEEDS[0])
    assert all(c.given and c.expected for c in verdict.criteria[: len(exercise.checks)])
    assert verdict.message_id == answer.mistake, (
        f"{answer.place} now gets `{verdict.message_id}`: if that is right, name it in its decorator; {verdict}"
    )
    assert (verdict.mistake is not None) is answer.named, "what is named must be recognised, and nothing else"
    keeps = f"this answer keeps {verdict.points} of {exercise.points} points: write `points={verdict.points}`"
    assert verdict.points == answer.points < exercise.points, keeps
    assert verdict.outcome is not Outcome.CORRECT
    if verdict.outcome is not Outcome.RAISED:
        assert verdict.outcome is (Outcome.PARTLY if answer.points else Outcome.INCORRECT)
    kept = messages.kept(exercise.lesson)[answer]
    said = messages.message(answer, verdict)
    assert messages.as_kept(said, kept) == kept, messages.renew(exercise.lesson)


@pytest.mark.parametrize("lesson", lessons())
def test_the_golden_file_holds_the_known_mistakes_and_no_others(lesson):
    headings = re.findall(r"^=== .*$", messages.stored(lesson), re.MULTILINE)
    assert headings == [messages.heading(answer) for answer in messages.wrong(lesson)], messages.renew(lesson)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
class TestEveryExercise:
    def test_has_answers_of_every_kind(self, exercise):
        given = [a for a in ANSWERS if a.exercise == exercise.id]
        assert any(a.mistake is None for a in given), "no alternative to the reference answer"
        tried = {a.mistake for a in given if a.mistake and a.named}
        without = sorted({m.id for m in exercise.mistakes} - tried)
        where = f"tests/answers/lesson_{exercise.lesson}/"
        assert not without, (
            f"{where}: {exercise.id}: no answer makes the mistakes {without}; add one for each"
        )
        assert tried <= {m.id for m in exercise.mistakes} | {*exercise.words.conduct}, (
            "an answer names a mistake that does not exist"
        )
        assert len(tried) >= 5
        assert len(exercise.hints) >= 2

    def test_says_each_thing_once(self, exercise):
        ids = [m.id for m in exercise.mistakes]
        assert len(ids) == len(set(ids))
        texts = [m.says.en for m in exercise.mistakes]
        assert len(texts) == len(set(texts))

    def test_the_stub_is_not_attempted(self, exercise):
        def stub(*args, **kwargs):
            raise NotImplementedError(STUB)

        verdict = verdict_on(exercise, stub)
        assert (verdict.outcome, verdict.points) == (Outcome.NOT_ATTEMPTED, 0)

    def test_another_not_implemented_error_is_an_error(self, exercise):
        def answer(*args, **kwargs):
            raise NotImplementedError("\"mse_cpu\" not implemented for 'Long'")

        assert verdict_on(exercise, answer).outcome is Outcome.RAISED

    @pytest.mark.parametrize(
        "answer", [3, None, "watch", torch.ones(1)], ids=["int", "None", "str", "Tensor"]
    )
    def test_what_cannot_be_called_is_named(self, exercise, answer):
        verdict = verdict_on(exercise, answer)
        assert (verdict.outcome, verdict.message_id) == (Outcome.INCORRECT, "not_callable")
        assert f"its type is `{type(answer).__name__}`" in repr(verdict)

    def test_a_coroutine_function_is_named_and_no_warning_is_left(self, exercise, recwarn):
        async def coroutine(*args):
            return None

        async def generator(*args):
            yield None

        for answer, en, zh in (
            (coroutine, "is a coroutine function", "是协程函数"),
            (generator, "is an asynchronous generator function", "是异步生成器函数"),
        ):
            verdict = verdict_on(exercise, answer)
            assert (verdict.outcome, verdict.points) == (Outcome.INCORRECT, 0)
            assert f"`{exercise.answer}` {en}" in repr(verdict) and f"`{exercise.answer}` {zh}" in repr(
                verdict
            )
        gc.collect()
        assert not list(recwarn), "none was called, and never awaited"

    def test_a_generator_function_is_named_unless_the_exercise_says_what_it_lacks(self, exercise):
        def generator(*args):
            yield None

        verdict = verdict_on(exercise, generator)
        assert (verdict.outcome, verdict.points) == (Outcome.INCORRECT, 0)
        if exercise.probe.yields:
            assert verdict.mistake and re.search("generator|contextmanager", verdict.mistake.says.en)
        else:
            assert verdict.message_id == "generator_function"
            assert f"`{exercise.answer}` is a generator function" in repr(verdict)
            assert f"`{exercise.answer}` 是生成器函数" in repr(verdict)

    @pytest.mark.parametrize(
        "answer",
        [
            lambda *a: None,
            lambda *a: a,
            lambda *a: [],
            lambda *a: {},
            lambda *a: torch.ones(3),
            lambda *a: object(),
        ],
    )
    def test_nonsense_never_scores_and_never_breaks_the_judge(self, exercise, answer):
        verdict = verdict_on(exercise, answer)
        assert verdict.points == 0
        assert verdict.outcome is not Outcome.CORRECT

    def test_a_seed_has_a_case_that_suits(self, exercise):
        for start in (0, 987654321, 2**32 - 1):
            seeds = exercise.seeds(start)
            assert len(seeds) == exercise.probe.cases and exercise.seeds(seeds[0]) == seeds
            for turn, seed in enumerate(seeds):
                assert 0 <= seed < 2**32
                assert exercise.suits(exercise.probe.case(Draw.of(seed, turn)))

    def test_input_is_fresh_for_each_seed(self, exercise):
        right = next(a for a in ANSWERS if a.exercise == exercise.id and a.mistake is None)
        records = {
            dumps(observe(exercise.probe, right.fresh(), exercise.seeds(seed)))
            for seed in (0, 1, 2, 3, 2**31)
        }
        # Two of five may meet by chance: in some exercises there are only dozens of right results.
        assert len(records) >= 4, "an answer could be written down instead of computed"


def test_no_lesson_needs_another():
    """Check that code shared by lessons is outside them: grading lesson 11 must not import lesson 05."""
    packages = list(Path(catalog.ROOT, "hookedu", "exercises").glob("*/lesson_*"))
    assert len(packages) >= 2 * len(lessons())
    wrong = [
        (path.parent.name, name)
        for package in packages
        for path in package.glob("*.py")
        for name in set(re.findall(r"\blesson_\d\d\b", path.read_text(encoding="utf-8")))
        if name != package.name
    ]
    assert wrong == []


def test_a_message_has_all_its_parts():
    def watch(y, seen):
        return y.register_hook(lambda grad: seen.append(y.grad))

    said = repr(verdict_on(find("02.1"), watch))
    order = [
        "02.1",
        "还不对 · Not yet",
        "Input",
        "Expected",
        "Got",
        "seen == [None, None]",
        "`.grad` stays `None`",
        'hint("02.1")',
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)


def test_a_traceback_shows_the_learners_frames_only():
    def watch(y, seen):
        def keep(grad):
            seen.nope(grad)

        return y.register_hook(keep)

    verdict = verdict_on(find("02.1"), watch)
    assert verdict.outcome is Outcome.RAISED
    assert [frame["name"] for frame in verdict.error["frames"]] == ["keep"]
    assert verdict.error["frames"][0]["code"] == "seen.nope(grad)"
    assert "autograd" not in repr(verdict)


def test_html_escapes_what_a_learner_wrote():
    def watch(y, seen):
        raise ValueError("<script>alert(1)</script>")

    page = verdict_on(find("02.1"), watch)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_the_probe_leaves_the_world_as_it_was():
    def watch(y, seen):
        random.seed(0), torch.manual_seed(0)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_printoptions(precision=2)
        torch.nn.modules.module.register_module_forward_hook(lambda *a: None)
        return y.register_hook(seen.append)

    def world():
        return random.getstate(), torch.get_default_dtype(), torch.is_grad_enabled(), str(torch.ones(1) / 3)

    torch.manual_seed(123)
    rng, before = torch.get_rng_state(), world()
    observe(find("02.1").probe, watch, [0])
    assert torch.equal(rng, torch.get_rng_state()) and before == world()
    assert not torch.nn.modules.module._global_forward_hooks


def test_a_check_does_not_load_the_compiler():
    """Loading it takes longer than 100 checks, and in the grader each submission would do so."""
    program = (
        "import sys, torch; from hookedu.exercises import find; from hookedu.exercises.probing import observe\n"
        "observe(find('02.1').probe, lambda y, seen: y.register_hook(seen.append), range(5))\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_notebook_without_gradients_does_not_spoil_the_check():
    with torch.no_grad():
        assert (
            verdict_on(find("02.1"), lambda y, seen: y.register_hook(seen.append)).outcome is Outcome.CORRECT
        )


def test_exit_in_an_answer_is_an_error_like_others():
    assert verdict_on(find("02.1"), lambda y, seen: exit()).outcome is Outcome.RAISED


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        *[("2.1", ["02.1"]), (2.1, ["02.1"])],
        *[
            (wrong, [exercise.id for exercise in of_lesson("02")])
            for wrong in ("02.01", "02.9", "02", 2, "02.l")
        ],
    ],
)
def test_unknown_ids_name_the_nearest(wrong, near):
    with pytest.raises(UnknownExercise) as caught:
        find(wrong)
    assert "nearest" in caught.value.says.en
    assert re.findall(r"`(\d\d\.\d)`", caught.value.says.en.partition("nearest")[2]) == near


@pytest.mark.parametrize("typed", ["02.1 ", "\n02.1", "０２.１", "02．1"])
def test_blanks_and_full_width_digits_are_no_other_number(typed):
    assert find(typed) is find("02.1")


@pytest.mark.parametrize("wrong", ["", None, "watch", find])
def test_what_is_no_number_is_asked_for_one(wrong):
    with pytest.raises(UnknownExercise, match=re.escape('`"02.1"`')):
        find(wrong)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -2.5, "text", [1, [2, None]], {"a": [1], 2: "b"}),
        *(math.nan, math.inf, -math.inf, [1.0, {"a": -math.inf}]),
        *(
            torch.tensor([1.5, float("nan"), float("inf")]),
            torch.zeros(2, 0),
            torch.tensor(3),
            torch.tensor([True]),
        ),
        torch.ones(2, 3, dtype=torch.float64),
    ],
)
def test_observations_survive_the_border(value):
    back = decode(json.loads(dumps({"v": encode(value)}))["v"])
    if isinstance(value, float) and math.isnan(value):
        assert math.isnan(back)
    elif isinstance(value, torch.Tensor):
        assert back.dtype == value.dtype and torch.equal(back.nan_to_num(7), value.nan_to_num(7))
    else:
        assert back == value


@pytest.mark.parametrize(
    "forged",
    [
        {"dtype": "float32", "shape": [3], "values": [1.0]},
        {"dtype": "object", "shape": [1], "values": [1]},
        {"dtype": "float32", "shape": [10**9, 10**9], "values": []},
        {"dtype": "float32", "shape": [1], "values": ["not a number"]},
        {"dtype": "int8", "shape": [1], "values": [10**30]},
        {"dict": [[1]]},
        {"tuple": 1},
        {"tuple": {"dict": []}},
        {"tuple": [], "dict": []},
        {"tuple": [{"anything": "else"}]},
        {"float": "1.0"},
        {"float": ["nan"]},
        {"anything": "else"},
        "x" * 5000,
    ],
)
def test_forged_observations_are_refused(forged):
    with pytest.raises(ObservationError):
        decode(forged)


def test_too_deep_too_long_and_wrong_records_are_refused():
    deep, tuples = [], []
    for _ in range(50):
        deep, tuples = [deep], {"tuple": [tuples]}
    for forged in (deep, tuples):
        with pytest.raises(ObservationError):
            decode(forged)
    for line in (b"x" * (MAX_BYTES + 1), b"[" * 100_000, b"[]", b"{", b"\xff"):
        with pytest.raises(ObservationError):
            loads(line)
    for record in (
        {},
        {"status": "correct"},
        {"status": "observed", "observations": [1]},
        {"status": "raised", "error": 1},
    ):
        with pytest.raises(ObservationError):
            judge(find("02.1"), record, find("02.1").seeds(0))
    for cases in ([], [{"dict": []}], [{"dict": []}] * 5, [{"dict": []}] * 6):
        with pytest.raises(ObservationError):
            judge(find("02.1"), {"status": "observed", "observations": cases}, find("02.1").seeds(0))


def test_an_exception_whose_class_hides_its_traceback_is_described():
    class Hides(Exception):
        __traceback__ = property(lambda self: 1 / 0)

    try:
        raise Hides("wrong")
    except Hides as error:
        told = describe_error(error)
    assert (told["type"], told["message"], len(told["frames"])) == ("Hides", "wrong", 1)
