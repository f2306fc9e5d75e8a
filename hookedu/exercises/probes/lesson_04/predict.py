"""What is observed of 04.1, `predict(k, m, s)`: what it predicts in three settings."""

from typing import Any

import numpy as np

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import rebuilt

# Signs of k, m and s; m is always larger than s, which is a fraction in the third setting. With these, no two formulas of the lesson agree in all settings. In
# the last setting k is 0, by which nothing can be divided.
_SIGNS = ((1, 1, 1), (1, 1, -1), (-1, -1, 1), (0, 1, 1))
Case = dict[str, tuple[float, float, float]]


def make_case(rng: Draw) -> Case:
    """Return four settings (k, m, s) by the call."""
    found: Case = {}
    for a, b, c in _SIGNS:
        k, m, s = a * rng.randint(2, 6), b * rng.randint(6, 9), c * rng.randint(2, 5)
        s += 0.125 if a < 0 else 0
        found[f"predict(k={k}, m={m}, s={s})"] = (k, m, s)
    return found


def numbers(value: Any) -> Any:
    """Return a tuple or list of any kind as a plain one, an array as a list, and numbers of NumPy in it as plain ones."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return rebuilt(value, map(numbers, value)) if isinstance(value, (tuple, list)) else value


def observe(predict: Any, case: Case) -> dict[str, Any]:
    """Call it with each setting."""
    return {"predicted": {call: numbers(predict(*setting)) for call, setting in case.items()}}


PROBE = Probe(
    "04.1",
    "predict",
    make_case,
    observe,
    cases=1,
)
