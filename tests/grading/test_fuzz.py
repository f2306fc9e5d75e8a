"""What a hostile process may send, and what a hostile file may hold: nothing of it breaks the grader or holds it up.

An ordinary test run tries a few hundred cases; `make scale` tries 10,000 of each kind.
"""

import copy
import functools
import json
import random

import pytest

from hookedu import catalog
from hookedu.exercises import lessons, of_lesson
from hookedu.exercises.feedback import Feedback
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import ObservationError, dumps, loads
from hookedu.exercises.probing import observe
from hookedu.grading.matching import key_of, lesson_by_name, lesson_of, plan
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import Unreadable
from tests.answers import answers
from tests.grading import notebooks as nb
from tests.timing import cpu_seconds

EXERCISES = [exercise for lesson in lessons() for exercise in of_lesson(lesson)]
SECOND = 1.0  # longest time that the grader's own process may take for one case
SIZES = [300, pytest.param(10_000, marks=pytest.mark.scale)]
ODD = [
    *(None, True, False, 0, -1, 1, 10**30, 0.5, 1e308, "", "x", "nan", "✗" * 300, [], [[]], {}, {"": None}),
    *([None] * 50, {"a": {"b": [1, {"c": []}]}}, [[1, 2], [3]], ["x", 1, None]),
]


@functools.cache
def record_of(exercise, which):
    """Return the record of one of the known answers to an exercise, as the grader receives it."""
    known = [answer for answer in answers() if answer.exercise == exercise.id]
    answer = known[which % len(known)]
    return json.loads(dumps(observe(exercise.probe, answer.fresh(), exercise.seeds(0))))


def places(node, path=()):
    """Yield the path of every node in a JSON value."""
    yield path
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def mutated(node, dice, values):
    """Return a copy with one to four changes: a value replaced, taken from elsewhere, left out or doubled."""
    node = copy.deepcopy(node)
    for _ in range(dice.choice((1, 1, 2, 4))):
        paths = [path for path in places(node) if path]
        if not paths:
            break
        *way, key = dice.choice(paths)
        parent = at(node, way)
        how = dice.randrange(4)
        if how == 0:
            parent[key] = copy.deepcopy(dice.choice(values))
        elif how == 1:
            parent[key] = copy.deepcopy(at(node, dice.choice(paths)))
        elif how == 2:
            del parent[key]
        elif isinstance(parent, list):
            parent.insert(dice.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
        else:
            parent[dice.choice(["", "x", "status", "result", "tensor", "shape", "dtype"])] = parent[key]
    return node


@pytest.mark.parametrize("cases", SIZES)
def test_no_record_breaks_the_judge(cases):
    failures, slowest = {}, (0.0, "")
    for seed in range(cases):
        dice = random.Random(seed)
        exercise = EXERCISES[seed % len(EXERCISES)]
        if exercise.id == "12.3":  # compiles: its records take seconds to make
            continue
        record = record_of(exercise, dice.randrange(3))
        line = json.dumps(mutated(record, dice, ODD))

        def case(exercise=exercise, line=line, seed=seed):
            try:
                Feedback.of(judge(exercise, loads(line), exercise.seeds(0)))
            except ObservationError:
                pass
            except Exception as error:
                failures.setdefault((exercise.id, f"{type(error).__name__}: {error}"[:100]), seed)

        slowest = max(slowest, (cpu_seconds(case, enough=SECOND), f"{exercise.id}, seed {seed}"))
    assert failures == {}
    assert slowest[0] < SECOND, slowest


@pytest.mark.parametrize("cases", SIZES)
def test_no_notebook_breaks_the_reading(cases):
    notebook = nb.answered(nb.reference())
    notebook["cells"] = notebook["cells"][:12] + notebook["cells"][-6:]
    keys = {lesson.id: key_of(lesson) for lesson in catalog.lessons()[:4]}
    failures, slowest = {}, (0.0, 0)
    for seed in range(cases):
        dice = random.Random(seed)
        data = json.dumps(mutated(notebook, dice, [*ODD, "\ud800", "\0", "def watch" * 999])).encode()
        if dice.random() < 0.2:  # a damaged file
            cut = dice.randrange(len(data))
            data = data[:cut] + dice.randbytes(dice.randrange(4)) + data[cut + dice.randrange(9) :]

        def case(data=data, seed=seed):
            try:
                cells = read_cells(data)
                lesson, _ = lesson_of(cells, lesson_by_name("02_tensor_hooks"))
                made = plan(cells, keys.get(lesson.id, keys["02"]))
                json.dumps([step.source for step in made.steps]).encode()
            except Unreadable:
                pass
            except Exception as error:
                failures.setdefault(f"{type(error).__name__}: {error}"[:100], seed)

        slowest = max(slowest, (cpu_seconds(case, enough=SECOND), seed))
    assert failures == {}
    assert slowest[0] < SECOND, slowest
