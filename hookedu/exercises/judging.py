"""Judge the record of a probe: the trusted half of checking an answer.

For a grade this runs in a process in which no learner's code has run. For a learner's own `check` it runs in the
notebook, where only the message matters.
"""

import random
import re
from typing import Any

from hookedu.exercises.criteria import Criterion
from hookedu.exercises.exercise import Exercise, Mistake, Outcome, Verdict
from hookedu.exercises.observation import ObservationError, decode


def judge(exercise: Exercise, record: dict[str, Any], seed: int) -> Verdict:
    """Return the verdict on a record that `probing.observe` made with the same seed.

    Parameters
    ----------
    exercise : Exercise
        Exercise that was answered.
    record : dict
        Record as `probing.observe` returns it, possibly from an untrusted process. Everything read from it is
        validated.
    seed : int
        Seed that the probe received, from `Exercise.seed`; the judge makes the same case from it.

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
        If the case of this seed does not suit the exercise.
    """
    status = record.get("status")
    if status == "not_attempted":
        return Verdict(exercise, Outcome.NOT_ATTEMPTED, 0)
    if status == "wrong_type":
        return Verdict(exercise, Outcome.INCORRECT, 0, wrong_type=str(record.get("got"))[:100])
    if status == "raised":
        error = check_error(record.get("error"))
        return Verdict(exercise, Outcome.RAISED, 0, mistake=_raised_mistake(exercise, error), error=error)
    if status != "observed":
        raise ObservationError(f"unknown status {str(status)[:40]!r}")
    observations = decode(record.get("observations"))
    if not isinstance(observations, dict):
        raise ObservationError("observations must be a dict")
    case = exercise.probe.case(random.Random(seed))
    if not exercise.suits(case):
        raise ValueError(f"{exercise.id}: the case of seed {seed} does not suit; take one from Exercise.seed")
    key = exercise.key(case)
    judged = (
        c.judged(observations, case, key, exercise.given, exercise.words.lines) for c in exercise.checks
    )
    return _weigh(exercise, tuple(judged))


def _weigh(exercise: Exercise, criteria: tuple[Criterion, ...]) -> Verdict:
    failed = [c for c in criteria if not c.passed]
    if not failed:
        return Verdict(exercise, Outcome.CORRECT, exercise.points, criteria)
    mistake = exercise.mistake(failed[0].mistake)
    points = 0 if any(c.essential for c in failed) else sum(c.points for c in criteria if c.passed)
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
