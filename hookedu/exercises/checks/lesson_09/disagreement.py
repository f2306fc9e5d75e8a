"""What decides about 09.5, `disagreement(model, x, names)`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.checks.lesson_09.shared import Mistakes, returned
from hookedu.exercises.conduct import ATTRIBUTES
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_09.disagreement import PROBE, Case

_TOLERANCE = 2e-6


class _Key:
    """Differences by name: the right ones, and those that mistakes give."""

    @torch.no_grad()
    def __init__(self, case: Case) -> None:
        model, self.x, self.names = case
        layers = nn.Sequential(*(m for m in model.modules() if not isinstance(m, nn.Sequential)))
        self.act = type(layers[1]).__name__
        # What in-place activations take away from the outputs that they overwrite.
        self.taken = [layers[:n](self.x) - layers[: n + 1](self.x) for n in (1, 4, 6)]

    def of(self, measure: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, float]:
        """Return the differences by name, measured in this way: an extractor drops what follows the last layer."""
        stem, third, _ = map(measure, self.taken)
        return self._by_name({"stem": stem, "body.third": third})

    @property
    def overwritten(self) -> dict[str, float]:
        """Without clone() the hook has what the activation after `last` left."""
        return self._by_name({"last": self.taken[2].abs().max()})

    def _by_name(self, differences: dict[str, torch.Tensor]) -> dict[str, float]:
        return {name: float(differences.get(name, 0.0)) for name in self.names}


def _largest(key: _Key) -> dict[str, float]:
    return key.of(lambda taken: taken.abs().max())


def _overwrites(case: Case) -> bool:
    """Check whether all layers are overwritten: several numbers of `stem`, of which the first is not the most changed.

    Where activations cut both ends, the largest change of a layer must be a decrease (ReLU only increases), and rounding to
    4 digits must show.
    """
    key = _Key(case)
    stem, third, last = key.taken
    changes = stem.abs().flatten()
    if (changes > 0).sum() < 2 or changes[0] == changes.max() or not (third.any() and last.any()):
        return False
    if not all(taken.min() <= 0 <= taken.max() for taken in (stem, third)):
        return False
    decreases = any(taken.max() > -taken.min() for taken in (stem, third))
    rounded = [abs(round(v, 4) - v) for v in _largest(key).values() if v]
    fits = decreases and min(rounded) > 4 * _TOLERANCE
    return key.act == "ReLU" or fits


def _near(found: Any, wanted: dict[str, float]) -> bool:
    numbers = isinstance(found, dict) and all(type(v) in (int, float) for v in found.values())
    return (
        numbers
        and found.keys() == wanted.keys()
        and all(abs(found[k] - wanted[k]) < _TOLERANCE for k in wanted)
    )


def _all_zero(saw: Any, key: _Key) -> bool:
    return _near(saw.result, dict.fromkeys(key.names, 0.0))


_MISTAKES: Mistakes = {
    "overwritten": Gives(lambda key: key.overwritten),
    "changes_model": lambda saw, key: (
        _all_zero(saw, key) and any(kind == ATTRIBUTES for kind, _ in saw.conduct)
    ),
    "one_at_a_time": lambda saw, key: _all_zero(saw, key) and saw.extracted > 1,
    "copied": lambda saw, key: _all_zero(saw, key) and saw.extracted == 0,
    "no_abs": Gives(lambda key: key.of(torch.max), lambda key: key.of(lambda taken: (-taken).max())),
    "signed": Gives(lambda key: key.of(torch.min)),
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
    given="x = {key.x}; model: stem, {key.act}_, [second, third, {key.act}_], last, {key.act}_; names = {key.names}",
    checks=[returned("differences", _largest, points=7, mistakes=_MISTAKES, equal=_near)],
    raises={"late_binding": r"KeyError: 'stem'"} | CALLS_NOW,
)
