"""What is observed of 09.5, `disagreement(model, x, names)`."""

import random
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import Bystander, conv, picture
from hookedu.exercises.probing import Probe

NAMES = ["stem", "body.second", "body.third", "last"]


class _Watch(Bystander):
    """A bystander that also counts the runs of `stem`, which one extractor per name runs more often."""

    stem_runs = 0

    def _count(self, module: nn.Module, args: Any, output: Any) -> None:
        super()._count(module, args, output)
        self.stem_runs += module is self._model.stem


def _named(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))


def _case(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor]:
    """Return (model, x); in-place ReLUs follow `stem`, `body.third` and `last`."""
    body = _named(second=conv(rng, 2, 2, 1), third=conv(rng, 2, 2, 1), act=nn.ReLU(inplace=True))
    stem, last = conv(rng, 1, 2, 2), conv(rng, 2, 1, 1)
    model = _named(stem=stem, act=nn.ReLU(inplace=True), body=body, last=last, end=nn.ReLU(inplace=True))
    return model, picture(rng)


def observe(disagreement: Any, case: tuple[nn.Sequential, torch.Tensor]) -> dict[str, Any]:
    """Compare once. Of the differences, tensors of one element are observed as numbers."""
    model, x = case
    watch = _Watch(model)
    found = disagreement(model, x.clone(), list(NAMES))
    if isinstance(found, dict):
        found = {k: v.item() if torch.is_tensor(v) and v.numel() == 1 else v for k, v in found.items()}
    return {"result": found, "runs": watch.stem_runs, **watch.traces()}


PROBE = Probe("09.5", "disagreement", _case, observe)
