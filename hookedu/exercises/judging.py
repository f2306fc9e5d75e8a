"""Judge the record of a probe: the trusted half of checking an answer.

For a grade this runs in a process in which no learner's code has run. For a learner's own `check` it runs in the
notebook, where only the message matters.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from hookedu.exercises.breaches import CONDUCT, REPEATABLE
from hookedu.exercises.conduct import STATE
from hookedu.exercises.criteria import Check, Criterion
from hookedu.exercises.exercise import Exercise, Mistake, Outcome, Verdict
from hookedu.exercises.observation import ObservationError, decode
from hookedu.exercises.probing import Draw, undisturbed
from hookedu.language import Text


def judge(exercise: Exercise, record: dict[str, Any], seeds: Sequence[int]) -> Verdict:
    """Return the verdict on a record that `probing.observe` made with the same seeds.

    A requirement is met if it is met in every case. The message shows the first case in which the first requirement is
    not met, and names a mistake only if that mistake fits every case in which it is not.

    Parameters
    ----------
    exercise : Exercise
        Exercise that was answered.
    record : dict
        Record as `probing.observe` returns it, possibly from an untrusted process. Everything read from it is
        validated.
    seeds : sequence of int
        Seeds that the probe received, from `Exercise.seeds`; the judge makes the same cases from them.

    Returns
    -------
    Verdict
        Outcome, points, criteria and the recognised mistake.

    Raises
    ------
    ObservationError
        If the record has another form than those that `probing.observe` returns, or lacks an observation. A wrong
        answer cannot cause this: either the record was tampered with, or the probe or the checks have a defect.
        Observations of the wrong kind do not raise; they fail the checks.
    ValueError
        If the case of one of these seeds does not suit the exercise.
    """
    # Cases and keys are computed under the same settings as beside the learner's code.
    with undisturbed():
        return _judge(exercise, record, seeds)


def _judge(exercise: Exercise, record: dict[str, Any], seeds: Sequence[int]) -> Verdict:
    status = record.get("status")
    if status == "not_attempted":
        return Verdict(exercise, Outcome.NOT_ATTEMPTED, 0)
    if status == "wrong_type":
        return Verdict(exercise, Outcome.INCORRECT, 0, wrong_type=str(record.get("got"))[:100])
    if status == "raised":
        return _raised(exercise, record, seeds)
    if status != "observed":
        raise ObservationError(f"unknown status {str(status)[:40]!r}")
    seen = _observations(record)
    if not seen or (len(seen) != len(seeds) and (len(seen) > 1 or not _keeps_state(seen[0]))):
        raise ObservationError(f"observations of {len(seen)} cases instead of {len(seeds)}")
    return _weigh(exercise, _criteria(exercise, seen, seeds))


def _observations(record: dict[str, Any]) -> list[dict[Any, Any]]:
    seen = decode(record.get("observations"))
    if not isinstance(seen, list) or not all(isinstance(one, dict) for one in seen):
        raise ObservationError("observations must be a list of dicts")
    return seen


def _criteria(exercise: Exercise, seen: list[dict[Any, Any]], seeds: Sequence[int]) -> tuple[Criterion, ...]:
    cases = [_judged(exercise, one, seed, n) for n, (one, seed) in enumerate(zip(seen, seeds, strict=False))]
    checks = (*exercise.checks, REPEATABLE, CONDUCT)
    return tuple(map(_in_all, checks, zip(*cases, strict=True)))


def _raised(exercise: Exercise, record: dict[str, Any], seeds: Sequence[int]) -> Verdict:
    """Return the verdict on an answer that raised: a known exception, else what failed in the cases before, else this one."""
    error, seen = check_error(record.get("error")), _observations(record)
    if len(seen) >= len(seeds):
        raise ObservationError("an exception after the last case")
    criteria = _criteria(exercise, seen, seeds) if seen else ()
    mistake = _raised_mistake(exercise, error)
    failed = next((c for c in criteria if not c.passed), None)
    if failed and not mistake:
        return Verdict(exercise, Outcome.INCORRECT, 0, criteria, exercise.mistake(failed.mistake))
    given = _given(exercise, seeds[len(seen)], len(seen)) if seen else ""
    return Verdict(exercise, Outcome.RAISED, 0, mistake=mistake, error=error, given=given)


def _given(exercise: Exercise, seed: int, turn: int) -> str | Text:
    """Return the input of a case as messages show it; empty if that needs observations."""
    case = exercise.probe.case(Draw.of(seed, turn))
    line = Check("given", ok=lambda saw, key: True).judged(
        {}, case, exercise.key(case), exercise.given, exercise.words.lines
    )
    try:
        return line.given
    except ObservationError:
        return ""


def _keeps_state(seen: dict[Any, Any]) -> bool:
    breaches = seen.get("conduct")
    return isinstance(breaches, list) and [STATE, ""] in breaches


def _judged(exercise: Exercise, seen: dict[Any, Any], seed: int, turn: int) -> tuple[Criterion, ...]:
    """Return the criteria of one case."""
    case = exercise.probe.case(Draw.of(seed, turn))
    if not exercise.has_suiting(case, seed, turn):
        raise ValueError(
            f"{exercise.id}: case {turn} of seed {seed} does not suit; take one from Exercise.seeds"
        )
    key, words = exercise.key(case), exercise.words.lines
    checks = (*exercise.checks, REPEATABLE, CONDUCT)
    return tuple(check.judged(seen, case, key, exercise.given, words) for check in checks)


def _in_all(check: Check, criteria: tuple[Criterion, ...]) -> Criterion:
    """Return the first failed criterion of the same check in several cases, with a mistake that fits all that failed."""
    failed = [turn for turn, criterion in enumerate(criteria) if not criterion.passed]
    if not failed:
        return criteria[0]
    fitting = tuple(
        id
        for id in check.mistakes
        if all(id in criteria[turn].mistakes for turn in failed)
        and set.intersection(*(criterion.ways(id) for criterion in criteria))
    )
    return dataclasses.replace(criteria[failed[0]], mistakes=fitting, turn=failed[0])


def _weigh(exercise: Exercise, criteria: tuple[Criterion, ...]) -> Verdict:
    failed = [c for c in criteria if not c.passed]
    if not failed:
        return Verdict(exercise, Outcome.CORRECT, exercise.points, criteria)
    mistake = exercise.mistake(failed[0].mistake)
    points = 0 if any(c.essential for c in failed) else sum(c.points for c in criteria if c.passed)
    points = min(points, exercise.points - 1)  # no full marks, whatever failed
    return Verdict(exercise, Outcome.PARTLY if points else Outcome.INCORRECT, points, criteria, mistake)


def _raised_mistake(exercise: Exercise, error: dict[str, Any]) -> Mistake | None:
    said = f"{error['type']}: {error['message']}"
    return next(
        (exercise.mistake(id) for id, pattern in exercise.raises.items() if re.search(pattern, said)), None
    )


def check_error(error: Any) -> dict[str, Any]:
    """Validate an error description of `probing.describe_error` and return a truncated copy of it.

    Frames of another form are dropped. Raises ObservationError if `error` is not such a description or has more
    than 20 frames.
    """
    match error:
        case {"type": str(kind), "message": str(message), "frames": list(frames)} if len(frames) <= 20:
            kept = [
                {"line": f["line"], "name": f["name"][:200], "code": f["code"][:200]}
                for f in frames
                if isinstance(f, dict)
                and type(f.get("line")) is int
                and type(f.get("name")) is str
                and type(f.get("code")) is str
            ]
            return {"type": kind[:100], "message": message[:500], "frames": kept}
    raise ObservationError("not an error's description")
