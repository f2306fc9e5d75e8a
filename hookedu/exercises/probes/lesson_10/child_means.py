"""What is observed of 10.1, `child_means(model, x)`: its result, and the output of the model."""

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.chain import Chain, lived_in, plain
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import linear, whole

_SHAPES = ((1, 3), (3, 3), (2, 1, 3), (2, 3))


def make_case(rng: Draw) -> tuple[Any, ...]:
    """Return (x, weights of the stem, the neck and the head, trained); the ReLU changes some values, but not all.

    In turn 1 the input is small and the model in eval mode; in turn 2 the input is larger than half precision can hold;
    in turn 3 a nan is in it.
    """
    shape = _SHAPES[rng.turn]
    while True:
        x = whole(rng, 9)[: 3 * shape[0]].reshape(shape)
        stem, neck, head = (whole(rng, 9).reshape(3, 3) for _ in range(3))
        if (x @ stem.T < 0).any() and (x @ stem.T > 0).any():
            break
    if rng.turn == 1:
        x = x / 1000
    elif rng.turn == 2:
        x = x * 2**17
    elif rng.turn == 3:
        x[0, 0] = torch.nan
    return x, stem, neck, head[:2], rng.turn != 1


class _ByColumns(nn.Module):
    """Return the same numbers in another order in memory, which view() refuses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mT.contiguous().mT


def _model(stem: torch.Tensor, neck: torch.Tensor, head: torch.Tensor, trained: bool) -> Chain:
    """Return a model whose stem gives its numbers column by column in memory, and whose neck has a stem inside."""
    first = nn.Sequential(OrderedDict(fc=linear(stem), turned=_ByColumns()))
    second = nn.Sequential(OrderedDict(stem=linear(neck)))
    children = {"head": linear(head), "neck": second, "stem": first, "act": nn.ReLU(inplace=True)}
    model = Chain(children, ("stem", "act", "neck", "head"), doubled="act")
    return lived_in(model, frozen="head.bias", still="stem", trained=trained)


def observe(child_means: Any, case: tuple[Any, ...]) -> dict[str, Any]:
    """Call it on two models; the first result is read after the second call, which has another input."""
    x, *rest = case
    model = _model(*rest)
    found = child_means(model, x.clone())
    one = isinstance(found, dict) and child_means(_model(*rest), 3 * x) is found
    means = plain(found)
    order = list(means) if isinstance(means, dict) else means
    training = model.ran_in_training == model.was_training
    return {"means": means, "order": order, "out": model.out, "training": training, "one": one}


PROBE = Probe("10.1", "child_means", make_case, observe, cases=len(_SHAPES), runs=1, restores=True)
