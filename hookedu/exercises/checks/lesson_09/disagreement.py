"""What decides about 09.5, `disagreement(model, x, names)`."""

from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.checks.lesson_09.shared import Mistakes, no_traces, returned
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_09.disagreement import NAMES, PROBE

_ZEROS = dict.fromkeys(NAMES, 0.0)


class _Key:
    """Differences by name: the right ones, and those that mistakes give."""

    @torch.no_grad()
    def __init__(self, case: tuple[nn.Sequential, torch.Tensor]) -> None:
        model, x = case
        layers = nn.Sequential(*(m for m in model.modules() if not isinstance(m, nn.Sequential)))
        self.outputs = [layers[:n](x) for n in (1, 4, 6)]
        # What in-place ReLUs take away from the outputs that they overwrite.
        stem, third, last = (output.clamp(max=0).abs() for output in self.outputs)
        self.max = _ZEROS | {"stem": stem.max().item(), "body.third": third.max().item()}
        self.mean = _ZEROS | {"stem": stem.mean().item(), "body.third": third.mean().item()}
        # Without clone() the hook has what the ReLU after `last` left, a ReLU that the extractor drops.
        self.overwritten = _ZEROS | {"last": last.max().item()}


def _overwrites(case: tuple[nn.Sequential, torch.Tensor]) -> bool:
    """Check whether in-place ReLUs overwrite `stem`, `body.third` and `last` with other numbers."""
    outputs = _Key(case).outputs
    return all(t.min() < 0 for t in outputs) and all(t.max() > 0 for t in outputs[:2])


def _near(found: Any, wanted: dict[str, float]) -> bool:
    numbers = isinstance(found, dict) and all(type(v) in (int, float) for v in found.values())
    return numbers and found.keys() == wanted.keys() and all(abs(found[k] - wanted[k]) < 1e-4 for k in wanted)


_MISTAKES: Mistakes = {
    "overwritten": Gives(lambda key: key.overwritten),
    "changes_model": lambda saw, key: _near(saw.result, _ZEROS) and not saw.unchanged,
    "one_at_a_time": lambda saw, key: _near(saw.result, _ZEROS) and saw.runs > 2,
    "all_zero": Gives(lambda key: _ZEROS),
    "signed": Gives(lambda key: {name: -value for name, value in key.max.items()}),
    "mean": Gives(lambda key: key.mean),
    "not_a_number": lambda saw, key: any(isinstance(v, torch.Tensor) for v in saw.result.values()),
    "only_says_whether": lambda saw, key: {type(v) for v in saw.result.values()} == {bool},
    "not_by_name": lambda saw, key: isinstance(saw.result, list | int | float),
}

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_overwrites,
    given="x = {case[1]}; model: stem, relu_, [second, third, relu_], last, relu_; names = " + show(NAMES),
    checks=[
        returned("differences", lambda key: key.max, points=4, mistakes=_MISTAKES, equal=_near),
        *no_traces("disagreement(model, x, names)"),
    ],
    raises={"late_binding": r"KeyError: 'stem'"} | CALLS_NOW,
)
