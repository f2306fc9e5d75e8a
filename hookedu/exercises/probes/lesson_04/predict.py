"""What is observed of 04.1, `predict(k, m, s)`: what it predicts in three settings."""

from hookedu.exercises.probing import Draw, Probe

# Signs of k, m and s; m is always larger than s, which is a fraction in the last setting. With these, no two formulas of the lesson agree in all settings.
_SIGNS = ((1, 1, 1), (1, 1, -1), (-1, -1, 1))
Case = dict[str, tuple[float, float, float]]


def make_case(rng: Draw) -> Case:
    """Return three settings (k, m, s) by the call."""
    found: Case = {}
    for a, b, c in _SIGNS:
        k, m, s = a * rng.randint(2, 6), b * rng.randint(6, 9), c * rng.randint(2, 5)
        s += 0.125 if a < 0 else 0
        found[f"predict(k={k}, m={m}, s={s})"] = (k, m, s)
    return found


PROBE = Probe(
    "04.1",
    "predict",
    make_case,
    observe=lambda predict, case: {"predicted": {call: predict(*setting) for call, setting in case.items()}},
    cases=1,
)
