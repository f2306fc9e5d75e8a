"""What is observed of 04.1, `predict(k, m, s)`: what it predicts in three settings."""

import random

from hookedu.exercises.probing import Probe

Case = dict[str, tuple[int, int, int]]


def make_case(rng: random.Random) -> Case:
    """Return three settings (k, m, s), in which different formulas do not give the same value by luck, by the call."""
    found: Case = {}
    while len(found) < 3:
        k, m, s = rng.randint(2, 6), rng.randint(2, 9), rng.choice([-4, -3, -2, 2, 3, 4, 5])
        if s not in (m, -m, (k - 1) * m) and 2 * s != -m:
            found[f"predict(k={k}, m={m}, s={s})"] = (k, m, s)
    return found


PROBE = Probe(
    "04.1",
    "predict",
    make_case,
    observe=lambda predict, case: {"predicted": {call: predict(*setting) for call, setting in case.items()}},
)
