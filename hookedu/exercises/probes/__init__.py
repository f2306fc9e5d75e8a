"""What is observed of an answer, one module per exercise: probes/lesson_NN/name.py defines `PROBE`.

A probe runs in the same process as the learner's code, so nothing in this folder tells a right answer from a wrong
one. It imports neither `checks`, which decides, nor the words; the grader's sandbox contains this folder only.
"""

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from hookedu.exercises.probing import Probe


@cache
def of_lesson(lesson: str) -> tuple[Probe, ...]:
    """Return the probes of a lesson such as "02", in the order of their exercises; () if it has none."""
    folder = Path(__file__).with_name(f"lesson_{lesson}")
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    modules = [import_module(f"{__name__}.lesson_{lesson}.{name}") for name in names]
    return tuple(sorted((m.PROBE for m in modules if hasattr(m, "PROBE")), key=lambda probe: probe.id))


def find(exercise_id: str) -> Probe:
    """Return the probe of an exercise; KeyError if there is none."""
    return {probe.id: probe for probe in of_lesson(exercise_id.split(".")[0])}[exercise_id]
