"""What is observed of 09.5, `disagreement(model, x, names)`."""

from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import conv, is_number, look_on, picture
from hookedu.exercises.probing import Draw, Probe

UNIT = 1025 / 8192  # all numbers are small multiples of it: their sums are exact, and have 13 digits
LIMIT = 4 * UNIT / 2**20
NUDGE = 131 / 2**46  # less than comparisons with a tolerance see; float32 rounds it up beside LIMIT
NAMES = ["stem", "last", "body.mix", "body"]  # neither in the order of running nor backwards


class Case(NamedTuple):
    """A model in which an in-place operation follows each convolution and the pool, and its input; all in float64."""

    model: nn.Sequential
    x: torch.Tensor


class _Body(nn.Module):
    """A convolution to very small numbers, cut off in place: no flag of a module tells of that. The pool copies.

    They run in another order than that of their definition. Tracing runs a hook on this container, and none on its layers.
    """

    def __init__(self, mix: nn.Conv2d) -> None:
        super().__init__()
        self.pool, self.mix = nn.AvgPool2d(1), mix

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.mix(x).clamp_(-LIMIT, LIMIT))


class _Nudge(nn.Module):
    """Add a very small number in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(NUDGE)


def _named(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def _case(rng: Draw) -> Case:
    """Return a model in training mode and two pictures, the second with larger numbers.

    What overwrites the output of `stem` can only raise its numbers. What overwrites that of `body.mix` lowers those of the
    first channel, which are not negative, by less than 1e-4, and raises those of the second by less; that of `body` gets hardly larger, everywhere. Those of `last` are not positive. Tracing a model for an extractor is slow, hence a single case.
    """
    mix, last = conv(rng, 2, 2, 1), conv(rng, 2, 1, 1)
    with torch.no_grad():
        mix.weight.abs_().div_(2**20)
        mix.weight[1] /= -4
        last.weight.abs_()
        last.weight[:, 0] *= -1
    begin = {"stem": conv(rng, 1, 2, 2), "act": nn.ReLU(True), "body": _Body(mix), "nudge": _Nudge()}
    model = _named(**begin, last=last, end=nn.ReLU(True))
    x = picture(rng, 2) * torch.tensor([UNIT, 2 * UNIT]).reshape(2, 1, 1, 1)
    return Case(model.double(), x.double())


def observe(disagreement: Any, case: Case) -> dict[str, Any]:
    """Compare once, and count how often `stem` ran in the model itself and elsewhere: in extractors.

    Of the differences, NumPy numbers and tensors of one element are observed as numbers. Something is added to the
    dictionary that the answer handed over, which shows if it hands over the same one in a second call.
    """
    model, x = case
    calls = look_on(model)
    found = disagreement(model, x, list(NAMES))
    if isinstance(found, dict):
        result, found = found, {k: v.item() if is_number(v) else v for k, v in found.items()}
        result["added by the caller"] = True
    return {"result": found, "extracted": calls[model[0]] - calls[model]}


PROBE = Probe("09.5", "disagreement", _case, observe, cases=1)
