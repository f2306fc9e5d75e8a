"""Tests of the mutations, and of a sample of the mutants of every exercise; `make mutants` tries all of them."""

import pytest

from hookedu.exercises import find, lessons, of_lesson
from tests.answers import mutants
from tests.answers.mutations import mutants as mutants_of

EXERCISES = [exercise.id for lesson in lessons() for exercise in of_lesson(lesson)]
# Of each exercise; fewer where a check has a single case, because it trains or compiles for seconds.
SAMPLE, SMALL_SAMPLE = 8, 3


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("def f(x):\n    g(x)\n    return x", "g(x) => nothing"),
        ("def f(x):\n    return x", "return x => nothing"),
        ("def f(x):\n    return x", "return x => return __import__('copy').copy(x)"),
        ("def f(x):\n    return x.detach()", "x.detach() => x"),
        ("def f(x):\n    return x.clone().sum()", "x.clone() => x"),
        ("def f(x):\n    return x.mean()", "x.mean() => x.sum()"),
        ("def f(x):\n    return x.norm()", "x.norm() => x.norm(1)"),
        ("def f(x, y):\n    return g(x, y)", "g(x, y) => g(y, x)"),
        ("def f(x, y):\n    return g(x, to=y)", "g(x, to=y) => g(x)"),
        ("def f(x):\n    if x:\n        g()", "if x: g() => g()"),
        ("def f(x):\n    if x:\n        g()", "if x: g() => if not x: g()"),
        ("def f(x):\n    return x if x < 1 else 2", "x < 1 => x <= 1"),
        ("def f(x):\n    return x if x < 1 else 2", "x if x < 1 else 2 => 2 if x < 1 else x"),
        ("def f(x):\n    return x + 3", "3 => 4"),
        ("def f(x):\n    return x + 3", "x + 3 => x - 3"),
        ("def f(args):\n    return g(args[0])", "args[0] => args"),
        ("def f(x):\n    return not x", "not x => x"),
        ("def f(x):\n    return all(x)", "all(x) => any(x)"),
        ("def f(x):\n    for a in x:\n        g(a)", "for a in x: g(a) => for a in x: g(a) break"),
        ("def f(x):\n    for a in x:\n        g(a)", "for a in x: g(a) => for a in list(x)[1:]: g(a)"),
        ("def f(x):\n    try:\n        g()\n    finally:\n        h()", "try: g() finally: h() => g(); h()"),
        ("def f(x):\n    with g():\n        h()", "with g(): h() => h()"),
        ("def f(n):\n    return lambda x, n=n: x + n", "lambda x, n=n: x + n => lambda x: x + n"),
        ("def f(x):\n    s = {}\n    g(s)", "def f(x): s = {} g(s) => def f(x, *, s={}): g(s)"),
        ("def f(x):\n    x += 1", "x += 1 => x = 1"),
        ("def f(m):\n    return m.modules()", "m.modules() => m.children()"),
    ],
)
def test_each_kind_of_step_is_made(source, change):
    found = list(mutants_of(source))
    assert change in [mutant.change for mutant in found]
    assert len({mutant.source for mutant in found}) == len(found), "each program once"
    assert all(compile(mutant.source, "", "exec") for mutant in found)


def test_imports_docstrings_and_annotations_stay():
    assert not list(mutants_of('import torch\n\n\ndef f(x: int) -> int:\n    """Does nothing."""\n'))


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_sample_of_its_mutants_is_refused(exercise):
    sample = SAMPLE if find(exercise).probe.cases > 1 else SMALL_SAMPLE
    tried = mutants.tried(exercise, sample=sample)
    survivors = [t for t in tried if "correct" in t.said]
    assert len(tried) == sample
    unexplained = [t.change for t in survivors if not mutants.reason(exercise, t.change)]
    assert not unexplained, "a gap in the exercise, or a line for tests/answers/lesson_NN/survivors.yml"


@pytest.mark.parametrize("lesson", lessons())
def test_every_reviewed_survivor_has_a_reason(lesson):
    for exercise, found in mutants.reviewed(lesson).items():
        assert find(exercise).lesson == lesson
        for change, reason in found.items():
            assert "=>" in change or "*" in change, f"{exercise}: {change}: no change"
            assert len(str(reason).split()) >= 2, f"{exercise}: {change}: why is it right?"
