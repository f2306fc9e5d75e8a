"""What is observed of 09.4, `dead_channels(model, relu, batches)`."""

import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import Bystander
from hookedu.exercises.probing import Probe

# Where a channel is above 0: everywhere, in one batch, or in one picture. A weak one is just above 0.
_ACTIVE = {"weak": ..., "first": 0, "last": -1, "once": (0, 1), "strong": ...}
ROLES = ("silent", "silent", *_ACTIVE)


class _Net(nn.Module):
    """A ReLU, an in-place operation and a layer: the output of the ReLU is overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.head = nn.ReLU(), nn.Conv2d(len(ROLES), 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.relu(x).add_(1))


class Case(NamedTuple):
    """The role of each channel, and x of shape (batch, picture, channel, 2, 2)."""

    roles: list[str]
    x: torch.Tensor


def _case(rng: random.Random) -> Case:
    roles = rng.sample(ROLES, len(ROLES))
    x = -torch.tensor([float(rng.randint(1, 5)) for _ in range(24 * len(ROLES))]).reshape(3, 2, -1, 4)
    for channel, role in enumerate(roles):
        place, value = rng.randrange(4), float(rng.randint(1, 9))
        if role in _ACTIVE:
            x[_ACTIVE[role]][..., channel, place] = 2.0**-13 if role == "weak" else value
    return Case(roles, x.unflatten(-1, (2, 2)))


def observe(dead_channels: Any, case: Case) -> dict[str, Any]:
    """Call it once. Tensors of channel numbers, or of one number each, are observed as a list of ints."""
    net = _Net()
    bystander = Bystander(net)
    result = dead_channels(net, net.relu, [batch.clone() for batch in case.x])
    if isinstance(result, torch.Tensor) and result.dim() == 1 and result.dtype in (torch.int64, torch.bool):
        result = result.tolist()
    if isinstance(result, list):
        result = [v.item() if isinstance(v, torch.Tensor) and v.dim() == 0 else v for v in result]
    return {"result": result, **bystander.traces()}


PROBE = Probe("09.4", "dead_channels", _case, observe)
