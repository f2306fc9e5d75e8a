"""What is observed of 10.4, `vanishing(model, x, target, ratio)`: its results for two ratios, and the output."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probes.chain import Chain, lived_in, plain
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, gradients, linear, whole

_NAMES: tuple[str, ...] = ("lift", "mix", "gate", "fold", "join", "turn", "spread", "pick")
_CLASSES, _COPIES = 4, 16
TINY = 2.0**-26

# Per turn: the ratio, in turn 0 smaller than half precision can hold; how much larger than at the last output the gradients at the outputs of stem, act, body and wide
# are, before the ReLU has silenced rows; the sign of the ReLU's input in each row.
_TURNS = (
    (0.1 * TINY, (0.01 * TINY, 0.16 * TINY, 2.0 * TINY, 0.012 * TINY), (-1, 1)),
    (1.0, (0.4, 1.6, 3.0, 0.12), (1, -1)),
    (3.0, (2.5, 4.0, 2.0, 6.0), (1,)),
    (0.05, (0.1, 0.02, 0.5, 0.01), (-1, -1)),
)


class Case(NamedTuple):
    """The children's names in the order of running, the weights of the linear ones, the other arguments, and the mode."""

    run: list[str]
    weights: Mapping[str, torch.Tensor]
    x: torch.Tensor
    target: torch.Tensor
    ratio: float
    trained: bool


def make_case(rng: Draw) -> Case:
    """Return a case in which every layer but one multiplies by a number, and so does backward.

    In turn 1 the model is in eval mode. Behind the stem a dropout of nothing passes its input on. The body changes
    signs besides; in turn 2 it lets through only the class of the target, so that the sizes before it depend on the
    loss: the gradient of cross-entropy has half of its size there. The wide one copies its input 16 times, and only the
    first copy is used: most of its gradients are 0.
    """
    ratio, (at_stem, at_act, at_body, at_wide), signs = _TURNS[rng.turn]
    unit, target = torch.eye(_CLASSES), torch.tensor([rng.randrange(1, _CLASSES) for _ in signs])
    run = stem, _, narrow, _, body, wide, head = rng.sample(_NAMES, 7)
    factors = {narrow: at_stem / at_act, body: at_act / at_body, wide: at_body / at_wide / _COPIES}
    weights = {name: factor * unit for name, factor in factors.items()} | {stem: unit}
    weights[body][target] *= -1
    if rng.turn == 2:
        weights[body] = 2 * weights[body].clamp(max=0)
    weights[wide] = weights[wide].repeat(_COPIES, 1)
    weights[head] = torch.cat([_COPIES * at_wide * unit, *[0 * unit] * (_COPIES - 1)], dim=1)
    # Small outputs of the model, whatever the factors: it is as good as guessing.
    x = torch.stack([sign * whole(rng, _CLASSES).abs() for sign in signs]) / 100 / at_stem
    return Case(run, weights, x, target, ratio, trained=rng.turn != 1)


def make_model(case: Case) -> Chain:
    """Build the model, with its children in another order than that of running."""
    stem, drop, narrow, act, body, wide, head = case.run
    layers: dict[str, nn.Module] = {
        name: linear(case.weights[name]) for name in (head, narrow, wide, stem, body)
    }
    layers[body], layers[drop] = nn.Sequential(layers[body]), nn.Dropout(0.0)
    model = Chain(layers | {act: nn.ReLU(inplace=True)}, case.run)
    return lived_in(model, f"{wide}.weight", still=body, trained=case.trained)


def observe(vanishing: Any, case: Case) -> dict[str, Any]:
    """Call it with the ratio, and again with one that all children are below."""
    model, data = make_model(case), (case.x, case.target)
    seen = {
        "found": plain(vanishing(model, *data, case.ratio)),
        "out": model.out,
        "training": model.ran_in_training == model.was_training,
        "grads": copies(gradients(model)),
        "passes": model.passes,
        "hooked": model.hooked,
        "retains": any(output.retains_grad for output in model.outputs),
    }
    return seen | {"all": plain(vanishing(model, *data, 1e9))}


PROBE = Probe(
    "10.4", "vanishing", make_case, observe, cases=len(_TURNS), leaves=(GRAD,), runs=1, restores=True
)
