"""What is observed of 05.2, `prove(model, x, skip)`: its results for three networks, of which one misreports."""

import random
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import linear, module_hooks, whole

# `lies`: by how much the network misreports each intermediate value.
Case = namedtuple("Case", "x weights skip lies")


class Net(nn.Module):
    """Network of example E4, which adds ``lies[i]`` to one value of the i-th intermediate result it reports."""

    def __init__(self, case: Case, lies: list[float], nested: bool = False) -> None:
        super().__init__()
        first, second = map(linear, case.weights)
        self.relu, self.fc2 = nn.ReLU(), second  # deliberately not in the order of calls
        self.squash, self.fc1 = case.skip(), nn.Sequential(first, nn.ReLU()) if nested else first
        self.lies, self.calls = lies, 0

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        self.calls += 1
        a = self.fc1(x)
        b = self.fc2(self.squash(a))
        c = self.relu(b)
        returned = [a.clone(), b.clone(), c.clone()]
        for tensor, lie in zip(returned, self.lies, strict=True):
            tensor.detach()[0, 0] += lie
        return c, returned


def make_case(rng: random.Random) -> Case:
    """Return a case whose lies are one positive, one negative and 0, in random order."""
    weights = [whole(rng, 4).reshape(2, 2), whole(rng, 2).reshape(1, 2)]
    lies = [float(rng.randint(2, 9)), -float(rng.randint(2, 9)), 0.0]
    rng.shuffle(lies)
    x, exact = whole(rng, 4).reshape(2, 2), (nn.ReLU6, nn.Hardtanh, nn.Identity)  # exact on whole numbers
    return Case(x, weights, rng.choice(exact), lies)


def observe(prove: Any, case: Case) -> dict[str, Any]:
    """Let the answer examine an honest network, one that lies, and one whose first child has children."""
    truth = [0.0] * 3
    nets = Net(case, truth), Net(case, case.lies), Net(case, truth, nested=True)
    results = [prove(net, case.x, case.skip) for net in nets]
    saw = dict(zip(("honest", "lying", "nested"), results, strict=True))
    return saw | {"calls": [net.calls for net in nets], "left": max(map(module_hooks, nets))}


PROBE = Probe("05.2", "prove", make_case, observe)
