"""What is observed of 05.4, `steer(module, direction, strength)`: two runs, backward, and a run without the hook."""

import random
from collections import OrderedDict, namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, linear, module_hooks, whole

# A batch of two, the push, and the weights of two square layers.
Case = namedtuple("Case", "x direction strength first second")


def make_case(rng: random.Random) -> Case:
    """Return a case in which the layers do not cancel a push."""
    while True:
        x, first, second = (whole(rng, 4).reshape(2, 2) for _ in range(3))
        if min(first.det().abs(), second.det().abs()) > 0.5:
            return Case(x, whole(rng, 2), float(rng.randint(2, 5)), first, second)


def observe(steer: Any, case: Case) -> dict[str, Any]:
    """Steer the first layer; run the network, backward, and the network again; remove the hook and run once more."""
    net = nn.Sequential(OrderedDict(fc1=linear(case.first), fc2=linear(case.second)))
    x, made, plain_forward = case.x.requires_grad_(), [], net[0].forward

    def forward(x: torch.Tensor) -> torch.Tensor:
        """Keep the output of fc1 before any hook receives it, so that only a change in place can alter it."""
        made.append(plain_forward(x))
        return made[-1]

    net[0].forward = forward
    handle = steer(net[0], case.direction, case.strength)
    saw = {"handle": handle, "hooks": module_hooks(net)}
    steered = net(x) + 0 * sum(p.sum() for p in net.parameters())  # so that backward never lacks a graph
    steered.sum().backward()
    saw |= {"steered": copies(steered), "again": copies(net(x)), "x_grad": copies(x.grad)}
    saw |= {"output": copies(made[0]) if made else None, "weights": copies(dict(net.named_parameters()))}
    remove_handle(handle)
    return saw | {"after": copies(net(x))}


PROBE = Probe("05.4", "steer", make_case, observe)
