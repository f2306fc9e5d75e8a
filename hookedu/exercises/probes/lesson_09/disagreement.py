"""What is observed of 09.5, `disagreement(model, x, names)`."""

from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import conv, is_number, look_on, picture
from hookedu.exercises.probing import Draw, Probe

NAMES = (["stem", "body.second", "body.third", "last"], ["body.third", "stem", "last"])


class Case(NamedTuple):
    """A model in which in-place activations follow `stem`, `body.third` and `last`; its input; names of layers."""

    model: nn.Sequential
    x: torch.Tensor
    names: list[str]


def _named(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def _case(rng: Draw) -> Case:
    """Return a model in training mode and a picture; a model in eval mode, whose activations cut both ends, and two.

    The numbers of the second are small fractions.
    """
    small = 2.0**-10
    first, second, third = (
        nn.ReLU(True) if rng.turn == 0 else nn.Hardtanh(-small, small, True) for _ in "123"
    )
    body = _named(second=conv(rng, 2, 2, 1), third=conv(rng, 2, 2, 1), act=second)
    last = conv(rng, 2, 1, 1)
    with torch.no_grad():
        last.weight[0, 0].abs_().neg_()  # a ReLU after it has something to overwrite
    model = _named(stem=conv(rng, 1, 2, 2), act=first, body=body, last=last, end=third)
    x = picture(rng, 1 + rng.turn) * (small if rng.turn else 1)
    return Case(model.train(rng.turn == 0), x, list(NAMES[rng.turn]))


def observe(disagreement: Any, case: Case) -> dict[str, Any]:
    """Compare once, and count how often `stem` ran in the model itself and elsewhere: in extractors.

    Of the differences, NumPy numbers and tensors of one element are observed as numbers.
    """
    model, x, names = case
    calls = look_on(model)
    found = disagreement(model, x, names)
    if isinstance(found, dict):
        found = {k: v.item() if is_number(v) else v for k, v in found.items()}
    return {"result": found, "extracted": calls[model[0]] - calls[model]}


PROBE = Probe("09.5", "disagreement", _case, observe, cases=len(NAMES))
