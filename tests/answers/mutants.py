"""Check every mutant of every known right answer; those that still pass must be reviewed.

    python -m tests.answers.mutants                 all of them, and the list of reviewed survivors
    python -m tests.answers.mutants 02 05.3         those of these lessons or exercises
    python -m tests.answers.mutants --seeds 20 02   and whether their messages stay the same for 20 first seeds
    python -m tests.answers.mutants --known 200     the same for the known answers themselves, without mutants
    python -m tests.answers.mutants --known 50:200 15.4     the first seeds 50 to 199 alone: a long run in parts

A mutant that passes is either a gap in the exercise, or right. Those that are right stand in
tests/answers/lesson_NN/survivors.yml with the reason, by exercise and by change ("old => new", where * stands for
anything):

    "02.1":
      "grad.detach() => grad": a gradient of a first backward pass holds no graph
"""

import ast
import contextlib
import io
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hookedu import catalog
from hookedu.exercises import Exercise, find, lessons, of_lesson
from hookedu.exercises.exercise import Outcome
from tests.answers import answers, reference, verdict_on
from tests.answers.mutations import Mutant, mutants, steps

_SECONDS = 20  # per check: some mutants never end
_SEEDS_AT_ONCE = 10  # of known answers: a process looks for the cases of a first seed once, for all of them


class Tried(NamedTuple):
    """A mutant and what became of it: "correct", the id of its message, or "endless"."""

    answer: str
    change: str
    source: str
    said: tuple[str, ...]  # one per seed


def programs(exercise_id: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the cell of every right answer to an exercise, the reference answer first."""
    lesson = catalog.find(find(exercise_id).lesson)
    tree = ast.parse(lesson.source.read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    yield "reference", "\n".join([*imports, reference(exercise_id)])
    for answer in answers():
        if answer.exercise == exercise_id and answer.mistake is None:
            yield answer.name, answer.typed()


def of_exercise(exercise_id: str) -> list[tuple[str, Mutant]]:
    """Return the mutants of all right answers to an exercise with the names of the answers, each program once."""
    found: dict[str, tuple[str, Mutant]] = {}
    for name, source in programs(exercise_id):
        for mutant in mutants(source):
            found.setdefault(mutant.source, (name, mutant))
    return list(found.values())


def some_of_exercise(exercise_id: str, count: int) -> list[tuple[str, Mutant]]:
    """Return some of these mutants, at random but always the same; the others are not even written out."""
    found = [(name, step) for name, source in programs(exercise_id) for step in steps(source)]
    random.Random(exercise_id).shuffle(found)
    written = {ast.unparse(ast.parse(source)) for _, source in programs(exercise_id)}
    some: list[tuple[str, Mutant]] = []
    while found and len(some) < count:
        name, step = found.pop()
        if (mutant := step.taken()) and mutant.source not in written:
            written.add(mutant.source)
            some.append((name, mutant))
    return some


def said(exercise: Exercise, source: str, seed: int) -> str:
    """Return the message id that a cell receives, or "endless" if its check does not end."""
    try:
        return _said(exercise, source, seed)
    except TimeoutError:  # anywhere, as the alarm may ring between two statements
        return "endless"


def _said(exercise: Exercise, source: str, seed: int) -> str:
    with contextlib.ExitStack() as stack:
        # A mutant may write files, of events for instance.
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.enter_context(_limited())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        random.seed(seed)
        namespace: dict[str, Any] = {}
        try:
            exec(compile(source, "<string>", "exec"), namespace)
        except TimeoutError:
            raise
        except Exception as error:
            return f"cell: {type(error).__name__}"
        if exercise.answer not in namespace:
            return "undefined"
        try:
            verdict = verdict_on(exercise, namespace[exercise.answer], seed)
        except KeyboardInterrupt:
            return "endless"
    if verdict.outcome is Outcome.CORRECT:
        return "correct"
    ended = verdict.error is not None and verdict.error["type"] == "TimeoutError"
    return "endless" if ended else f"{verdict.message_id} {verdict.points}"


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@cache
def reviewed(lesson: str) -> dict[str, dict[str, str]]:
    """Return the reasons why mutants pass, by exercise and change."""
    path = Path(__file__).with_name(f"lesson_{lesson}") / "survivors.yml"
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}


def reason(exercise_id: str, change: str) -> str | None:
    """Return the pattern in the list of reviewed survivors that a change fits, or None."""
    known = reviewed(exercise_id.split(".")[0]).get(exercise_id, {})
    if change in known:
        return change
    # Brackets are no wildcards here: they stand in code.
    return next((p for p in known if fnmatchcase(change, p.replace("[", "[[]"))), None)


def tried(exercise_id: str, seeds: int = 1, sample: int | None = None) -> list[Tried]:
    """Check the mutants of an exercise, or a random sample of them, each with so many first seeds."""
    found = of_exercise(exercise_id) if sample is None else some_of_exercise(exercise_id, sample)
    exercise = find(exercise_id)
    return [
        Tried(
            name, mutant.change, mutant.source, tuple(said(exercise, mutant.source, n) for n in range(seeds))
        )
        for name, mutant in found
    ]


def known(exercise_id: str, seeds: range) -> list[tuple[str, str, Counter[str]]]:
    """Check the known answers to an exercise with these first seeds; return for each its name, the verdict due, and how often each was given."""
    exercise = find(exercise_id)
    return [
        (
            f"{a.known_as} at {a.place}",
            "correct" if a.mistake is None else f"{a.mistake} {a.points}",
            Counter(said(exercise, a.typed(), n) for n in seeds),
        )
        for a in answers()
        if a.exercise == exercise_id
    ]


def _mutants_of(task: tuple[str, int]) -> tuple[str, list[Tried], float]:
    begun = time.monotonic()
    return task[0], tried(*task), time.monotonic() - begun


def _known_of(task: tuple[str, range]) -> tuple[str, range, list[tuple[str, str, Counter[str]]], float]:
    begun = time.monotonic()
    return *task, known(*task), time.monotonic() - begun


def _in_processes(work: Callable[..., Any], tasks: list[Any]) -> Iterator[Any]:
    """Yield what the tasks return, as they end. Whatever an answer does to its process, the next task runs in another."""
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(work, tasks, chunksize=1)


def check_known(ids: list[str], seeds: range) -> int:
    """Check the known answers to these exercises and print each that gets another verdict than is due; return how often that is."""
    begun, flips, checks = time.monotonic(), 0, 0
    tasks = [
        (id, seeds[first : first + _SEEDS_AT_ONCE])
        for id in ids
        for first in range(0, len(seeds), _SEEDS_AT_ONCE)
    ]
    for id, part, found, taken in _in_processes(_known_of, tasks):
        others = [(name, given) for name, due, given in found if set(given) != {due}]
        print(
            f"{id}: {len(found)} answers, first seeds {part.start} to {part.stop - 1}, {len(others)} flip, {taken:.0f} s",
            flush=True,
        )
        for name, given in others:
            print(f"  flips: {name} {dict(given)}", flush=True)
        flips, checks = flips + len(others), checks + len(found) * len(part)
    print(f"{checks} checks, {flips} flips, {time.monotonic() - begun:.0f} s")
    return flips


def check_mutants(ids: list[str], seeds: int) -> int:
    """Check the mutants of these exercises and print those that need a look; return how many lines need one."""
    begun, count, bad, flips, used = time.monotonic(), 0, 0, 0, set()
    for id, found, taken in _in_processes(_mutants_of, [(id, seeds) for id in ids]):
        survivors = [t for t in found if "correct" in t.said]
        unexplained = [t for t in survivors if not (fits := reason(id, t.change)) or used.add((id, fits))]
        changing = [t for t in found if len(set(t.said)) > 1]
        print(
            f"{id}: {len(found)} tried, {len(survivors)} pass, {len(unexplained)} unexplained, "
            f"{len(changing)} flip, {taken:.0f} s",
            flush=True,
        )
        for t in unexplained:
            print(f"  passes: {t.change}    ({t.answer})")
        for t in changing:
            print(f"  flips: {t.change}    ({t.answer}) {dict(Counter(t.said))}")
        count, bad, flips = count + len(found), bad + len(unexplained), flips + len(changing)
    print(f"{count} tried, {bad} unexplained survivors, {flips} flips, {time.monotonic() - begun:.0f} s")
    unused = [(id, p) for id in ids for p in reviewed(id.split(".")[0]).get(id, {}) if (id, p) not in used]
    for id, pattern in unused:
        print(f"  {id}: no surviving mutant fits {pattern!r}")
    return bad + flips + len(unused)


def main(arguments: list[str]) -> int:
    """Run from the command line; return the exit status."""
    options = {}
    for option in ("--seeds", "--known"):
        if option in arguments:
            at = arguments.index(option)
            options[option] = arguments[at + 1]
            del arguments[at : at + 2]
    ids = [e.id for lesson in lessons() for e in of_lesson(lesson)]
    ids = [id for id in ids if not arguments or id in arguments or id.split(".")[0] in arguments]
    if "--known" in options:
        first, _, last = options["--known"].rpartition(":")
        return bool(check_known(ids, range(int(first or 0), int(last))))
    return bool(check_mutants(ids, int(options.get("--seeds", 1))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
