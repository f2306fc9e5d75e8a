"""What is observed of 09.1, `conv_groups(model, x)`: a run, and what stays on the model when a run fails."""

import random
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import Bystander, conv, picture
from hookedu.exercises.probes.onlooker import is_cut
from hookedu.exercises.probing import Interruption, Probe


class _Net(nn.Module):
    """Three convolutions whose outputs are overwritten: two by in-place ReLUs (one runs twice), one by `+=`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        inner = nn.Sequential(conv(rng, 2, 2, 3, padding=1), nn.ReLU(inplace=True))
        self.body = nn.Sequential(conv(rng, 1, 2, 2), nn.ReLU(inplace=True), inner)
        self.last, self.relu = conv(rng, 2, 2, 3, padding=1), nn.ReLU(inplace=True)
        self.broken = self.cut = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body[2](self.body(x))
        if self.broken:
            raise Interruption
        out = self.last(h)
        self.cut = self.cut or is_cut(h) or is_cut(out)
        out += h
        return self.relu(out)


def _case(rng: random.Random) -> tuple[_Net, torch.Tensor]:
    """Return (net, x)."""
    return _Net(rng), picture(rng)


def observe(conv_groups: Any, case: tuple[_Net, torch.Tensor]) -> dict[str, Any]:
    """Group the outputs of a run, then of one that raises."""
    net, x = case
    bystander = Bystander(net)
    found = conv_groups(net, x.clone())
    # A shape may be a tuple or a torch.Size; neither can be a key of an observed dict.
    pairs = found.items() if isinstance(found, dict) else ()
    groups = {str(tuple(k)) if isinstance(k, tuple) else k: outputs for k, outputs in pairs}
    kept = [t for group in groups.values() for t in (group if isinstance(group, list | tuple) else [group])]
    report = {
        "keys": list(groups) if isinstance(found, dict) else found,
        "groups": groups,
        "attached": sum(isinstance(t, torch.Tensor) and t.requires_grad for t in kept),
        "graph": not net.cut,
        **bystander.traces(),
    }
    for module in net.modules():
        module._forward_hooks.clear()  # those left on would add to the groups
    net.broken = True
    with suppress(Interruption):
        conv_groups(net, x.clone())
    return report | {"left_by_error": bystander.others()}


PROBE = Probe("09.1", "conv_groups", _case, observe)
