"""Benchmark of `check`: loading the words of a lesson, and checking the reference answer of each exercise.

Loading is compared with reading the same files as text; `words` are those of one lesson and the shared ones. Bounds: 30
ms for the words of a lesson; 50 ms for a check, unless the answer trains or compiles. The slowest exercises are printed.
"""

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from hookedu import catalog
from hookedu.exercises import Exercise, lessons, of_lesson, words
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import observe
from tests.answers import answers

ROUNDS = 15


def milliseconds(do: Callable[[], Any]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        do()
        times.append(time.perf_counter() - begun)
    return 1000 * statistics.median(times)


def load(lesson: str) -> None:
    """Load the words of a lesson and the shared ones from their files."""
    words._load.cache_clear()
    words._shared.cache_clear()
    words._shared(lesson)


def read(lesson: str) -> None:
    """Read the same files as text."""
    for name in (words.file_of(lesson), words.SHARED):
        (catalog.ROOT / "course" / name).read_text(encoding="utf-8")


def check(exercise: Exercise, answer: Any) -> None:
    """Probe and judge an answer, as `check` does."""
    seeds = exercise.seeds(random.getrandbits(32))
    judge(exercise, observe(exercise.probe, answer, seeds), seeds)


for lesson in lessons():
    loading, reading = (
        milliseconds(lambda lesson=lesson: load(lesson)),
        milliseconds(lambda lesson=lesson: read(lesson)),
    )
    print(f"words of {lesson} {loading:6.1f} ms   {loading / reading:5.0f} of reading the text")
right = {a.exercise: a for a in answers() if a.mistake is None}
rows = []
for exercise in (e for lesson in lessons() for e in of_lesson(lesson)):
    answer = right[exercise.id].fresh()
    rows.append((milliseconds(lambda e=exercise, a=answer: check(e, a)), exercise.id))
print(f"check, median of {len(rows)} exercises {statistics.median(t for t, _ in rows):6.1f} ms")
for taken, name in sorted(rows, reverse=True)[:8]:
    print(f"check {name} {taken:8.1f} ms   {taken / 50:5.2f} of the bound")
