"""What decides about 09.5, `disagreement(model, x, names)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.checks.lesson_09.shared import Mistakes, returned
from hookedu.exercises.conduct import ATTRIBUTES
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_09.disagreement import LIMIT, NAMES, NUDGE, PROBE, UNIT, Case

_TOLERANCE = 1e-7  # relative for numbers below 1
# What overwrites the output of each layer, in the order of running: a container gives what its last layer gives.
_OVERWRITES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "stem": torch.relu,
    "body.mix": lambda output: output.clamp(-LIMIT, LIMIT),
    "body": lambda output: output + NUDGE,
    "last": torch.relu,
}


class _Key:
    """Differences by name: the right ones, and those that mistakes give."""

    @torch.no_grad()
    def __init__(self, case: Case) -> None:
        model, x = case
        self.shown = show(x / UNIT)
        # What in-place operations take away from the outputs that they overwrite.
        self.given: dict[str, torch.Tensor] = {}
        self.taken: dict[str, torch.Tensor] = {}
        for name, overwrite in _OVERWRITES.items():
            given = model.get_submodule("body.pool" if name == "body" else name)(x)
            x = overwrite(given)
            self.given[name] = given
            self.taken[name] = given - x

    def of(self, measure: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, float]:
        """Return the differences by name, measured in this way: an extractor drops what follows the last layer."""
        return {name: 0.0 if name == "last" else float(measure(self.taken[name])) for name in NAMES}

    @property
    def as_defined(self) -> dict[str, float]:
        """With outputs in the order of running, and names in that of the definition."""
        other = {"body.mix": "body", "body": "body.mix"}
        found = {name: given - self.taken[name] * (name != "last") for name, given in self.given.items()}
        return {name: float((self.given[other.get(name, name)] - found[name]).abs().max()) for name in NAMES}

    @property
    def overwritten(self) -> dict[str, float]:
        """Without clone() the hook has what the activation after `last` left."""
        return {name: float(self.taken[name].abs().max()) * (name == "last") for name in NAMES}


def _largest(key: _Key) -> dict[str, float]:
    return key.of(lambda taken: taken.abs().max())


def _overwrites(case: Case) -> bool:
    """Check whether all outputs are overwritten, and the first two of them only in part, most in the second picture.

    Rounding must show: no difference is near a number of 5 digits. That of `body.mix` passes for 0 where numbers are
    compared with a tolerance.
    """
    key = _Key(case)
    stem, mix, _, last = (key.taken[name] for name in _OVERWRITES)
    if not (stem.any() and mix.any() and last.any()) or (stem != 0).all() or (mix != 0).all():
        return False
    if mix[:, 1].min() == 0:
        return False
    # A difference of largest magnitudes is then neither 0 nor any other of `stem`.
    if not 0 < key.given["stem"].max() < -key.given["stem"].min():
        return False
    if not all(taken[0].abs().max() < taken.abs().max() for taken in (stem, mix)):
        return False
    largest = _largest(key)
    return largest["stem"] > 1 and all(_shows_rounding(v) for v in largest.values() if v)


def _shows_rounding(v: float) -> bool:
    return abs(round(v, 5) - v) > 4 * _TOLERANCE * min(1, v)


def _near(found: Any, wanted: dict[str, float]) -> bool:
    numbers = isinstance(found, dict) and all(type(v) in (int, float) for v in found.values())
    return (
        numbers
        and found.keys() == wanted.keys()
        and all(abs(found[k] - wanted[k]) <= _TOLERANCE * min(1, abs(wanted[k])) for k in wanted)
    )


def _all_zero(saw: Any, key: _Key) -> bool:
    return _near(saw.result, dict.fromkeys(NAMES, 0.0))


def _too_few(saw: Any, key: _Key) -> bool:
    """Check whether nothing was overwritten, or nothing by a ReLU: what overwrites `stem` is one."""
    return _all_zero(saw, key) or _near(saw.result, _largest(key) | {"stem": 0.0})


# Largest differences without abs(), or with abs() or a lower limit of 0 when it is too late.
_ONE_DIRECTION: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.max,
    lambda taken: (-taken).max(),
    lambda taken: taken.max().abs(),
    lambda taken: taken.clamp(min=0).max(),
)

_MISTAKES: Mistakes = {
    "traced": lambda saw, key: Opaque("Proxy") in saw.result.values(),
    "overwritten": Gives(lambda key: key.overwritten),
    "as_defined": Gives(lambda key: key.as_defined),
    "changes_model": lambda saw, key: (
        _too_few(saw, key) and any(kind == ATTRIBUTES for kind, _ in saw.conduct)
    ),
    "one_at_a_time": lambda saw, key: _all_zero(saw, key) and saw.extracted > 1,
    "copied": lambda saw, key: _too_few(saw, key) and saw.extracted == 0,
    "no_abs": Gives(*(lambda key, of=of: key.of(of) for of in _ONE_DIRECTION)),
    "signed": Gives(lambda key: key.of(torch.min), lambda key: key.of(lambda taken: (-taken).min())),
    "mean": Gives(lambda key: key.of(lambda taken: taken.abs().mean())),
    "rounded": lambda saw, key: all(
        found in {float(int(v)), *(round(v, digits) for digits in range(6))}
        for found, v in ((saw.result[name], v) for name, v in _largest(key).items())
    ),
    "not_a_number": lambda saw, key: any(isinstance(v, torch.Tensor) for v in saw.result.values()),
    "only_says_whether": lambda saw, key: {type(v) for v in saw.result.values()} == {bool},
    "not_by_name": lambda saw, key: isinstance(saw.result, list | int | float),
}

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_overwrites,
    given=lambda saw, key: (
        f"x = {key.shown} * {UNIT:g}; model: stem, relu_, [mix, clamp_, pool], add_, last, relu_; names = {NAMES}"
    ),
    checks=[returned("differences", _largest, points=7, mistakes=_MISTAKES, equal=_near)],
    raises={"late_binding": r"KeyError: 'stem'"} | CALLS_NOW,
)
