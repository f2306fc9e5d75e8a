"""What is observed of 10.1, `child_means(model, x)`: its result, and what it leaves on a model and on one that raises."""

import random
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_10.shared import Chain, all_hooks, interrupted
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import linear, whole


def make_case(rng: random.Random) -> tuple[torch.Tensor, ...]:
    """Return (x, weight of the stem, weight of the head); the ReLU changes some values, but not all."""
    while True:
        x, stem, head = whole(rng, 3).reshape(1, 3), whole(rng, 9).reshape(3, 3), whole(rng, 6).reshape(2, 3)
        if (x @ stem.T < 0).any() and (x @ stem.T > 0).any():
            return x, stem, head


def _model(stem: torch.Tensor, head: torch.Tensor, broken: bool = False) -> Chain:
    inner = nn.Sequential(OrderedDict(fc=linear(stem)))
    children = {"head": linear(head), "act": nn.ReLU(inplace=True), "stem": inner}
    return Chain(children, ("stem", "act", "head"), broken)


def observe(child_means: Any, case: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    x, stem, head = case
    model = _model(stem, head)
    found = child_means(model, x)
    return {
        "means": dict(found) if isinstance(found, dict) else found,
        "order": list(found) if isinstance(found, dict) else found,
        "out": model.out,
        "left": all_hooks(model),
        **interrupted(child_means, _model(stem, head, broken=True), x),
    }


PROBE = Probe("10.1", "child_means", make_case, observe)
