"""What is observed of 10.4, `vanishing(model, x, target, ratio)`: its results, and what it leaves behind."""

import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_10.shared import Chain, all_hooks, interrupted
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import linear, whole

_NAMES: tuple[str, ...] = ("lift", "mix", "gate", "fold", "join", "turn", "spread", "pick")


class Case(NamedTuple):
    """The children's names in the order of running, the weights of all but the ReLU, and the other arguments."""

    run: list[str]
    weights: dict[str, torch.Tensor]
    x: torch.Tensor
    target: torch.Tensor
    ratio: float


def make_case(rng: random.Random) -> Case:
    """Return a case in which the gradients of the first two children are often small."""

    def draw(rows: int, columns: int, divisor: int) -> torch.Tensor:
        return torch.stack([whole(rng, columns) for _ in range(rows)]) / divisor

    run = stem, narrow, _, wide, head = rng.sample(_NAMES, 5)
    weights = {stem: draw(8, 2, 10), narrow: draw(4, 8, 50), wide: draw(8, 4, 200), head: draw(12, 8, 4)}
    x, target = whole(rng, 4).reshape(2, 2) / 10, torch.tensor([rng.randrange(12) for _ in range(2)])
    return Case(run, weights, x, target, ratio=float(f"{10 ** rng.uniform(-2, 0):.2g}"))


def _model(case: Case, broken: bool = False) -> Chain:
    stem, narrow, act, wide, head = case.run
    layers = {name: linear(case.weights[name]) for name in (head, narrow, wide, stem)}
    return Chain(layers | {act: nn.ReLU(inplace=True)}, case.run, broken)


def observe(vanishing: Any, case: Case) -> dict[str, Any]:
    """Call it on a model, on the same with a ratio that no child is below, and on a model that raises."""
    model, (_, _, *data, ratio) = _model(case), case
    return {
        "found": vanishing(model, *data, ratio),
        "left": all_hooks(model),
        "healthy": vanishing(_model(case), *data, 1e-9),
        **interrupted(vanishing, _model(case, broken=True), *data, ratio),
    }


PROBE = Probe("10.4", "vanishing", make_case, observe)
