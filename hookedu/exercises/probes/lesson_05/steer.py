"""What is observed of 05.4, `steer(module, direction, strength)`: two runs, backward, and a run without the hook."""

from collections import OrderedDict, namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_05.shared import keep_outputs
from hookedu.exercises.probes.onlooker import Onlooker
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies, linear, whole

# Input, the push, the weights of two square layers, and the mode of the first, "train" or "eval".
Case = namedtuple("Case", "x direction strength first second mode")


class Layer(nn.Linear):
    """A linear layer with a child, which an answer has no reason to hook."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__(2, 2)
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(torch.zeros(2))
        self.child = nn.Identity()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.child(super().forward(input))


def make_case(rng: Draw) -> Case:
    """Return a case in which the layers do not cancel a push: a batch of two, then one vector, then rank 3."""
    while True:
        x, first, second = (whole(rng, 4).reshape(2, 2) for _ in range(3))
        if min(first.det().abs(), second.det().abs()) > 0.5:
            break
    strength = float(rng.randint(2, 5)) * (1 - 2 * (rng.turn == 1)) + (rng.turn == 2) / 2
    x, mode = (x, x[0], x[None])[rng.turn], ("train", "eval", "train")[rng.turn]
    return Case(x, whole(rng, 2), strength, first, second, mode)


def observe(steer: Any, case: Case) -> dict[str, Any]:
    """Steer the first layer; run the network, backward, and the network again; remove the hook and run once more."""
    fc1, fc2 = Layer(case.first), linear(case.second)
    net, x = nn.Sequential(OrderedDict(fc1=fc1, fc2=fc2)), case.x.requires_grad_()
    fc1.train(case.mode == "train").child.eval()
    made, onlooker = keep_outputs(fc1), Onlooker(net)
    handle = steer(fc1, case.direction, case.strength)
    saw = {"handle": handle, "hooks": onlooker.others()}
    steered = net(x) + 0 * sum(p.sum() for p in net.parameters())  # so that backward never lacks a graph
    steered.sum().backward()
    saw |= {"steered": copies(steered), "again": copies(net(x)), "x_grad": copies(x.grad)}
    saw["output"] = copies(made[0]) if made else None
    saw["weights"] = {
        f"{n}.{k}": copies(getattr(m, k)) for n, m in (("fc1", fc1), ("fc2", fc2)) for k in ("weight", "bias")
    }
    remove_handle(handle)
    return saw | {"after": copies(net(x))}


PROBE = Probe("05.4", "steer", make_case, observe, cases=3, leaves=(HANDLES,))
