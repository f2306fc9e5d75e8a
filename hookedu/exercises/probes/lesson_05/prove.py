"""What is observed of 05.2, `prove(model, x, skip)`: its results for three networks, of which one misreports."""

from collections import namedtuple
from typing import Any

import numpy
import torch
from torch import nn

from hookedu.exercises.observation import encode
from hookedu.exercises.probes.onlooker import Onlooker, is_cut
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import linear, rebuilt, whole

# `lies`: what the network adds to each intermediate value that it reports; `reuses`: whether it runs ReLU twice, a child
# under two names; `act`: the class of that child.
Case = namedtuple("Case", "x weights skip lies reuses act")

_SHAPES = (5, 3), (2,), (1, 3, 2)


class Layers:
    """Holds a class, whose full name is thus another than its name."""

    class Rectify(nn.ReLU):
        """A ReLU."""


class Net(nn.Module):
    """Network of example E4, which adds ``lies[i]`` to the i-th intermediate result that it reports."""

    def __init__(self, case: Case, lies: list[torch.Tensor] | None = None, nested: bool = False) -> None:
        super().__init__()
        first, second = map(linear, case.weights)
        self.relu, self.fc2 = case.act(), second  # deliberately not in the order of calls
        self.squash, self.fc1 = case.skip().eval(), nn.Sequential(first, case.act()) if nested else first
        self.fc2.weight.requires_grad_(False)
        for parameter in self.to(case.x.dtype).parameters():
            parameter.grad = torch.ones_like(parameter)
        if case.reuses:
            self.again = self.relu
        self.lies, self.reuses, self.calls = lies, case.reuses, 0
        self.shared, self.at_end, self.attached, self.cut = [], [], [], False

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        self.calls += 1
        returned = [self.fc1(x)]
        if self.reuses:
            returned.append(self.relu(returned[-1]))
        returned.append(self.fc2(self.squash(returned[-1])))
        out = self.relu(returned[-1])
        returned.append(out)
        lies = self.lies or [0] * len(returned)
        self.shared = [*returned, *(r + lie for r, lie in zip(returned, lies, strict=True))]
        learns = any(p.requires_grad for p in self.fc1.parameters())  # unless the answer froze it
        self.cut |= learns and any(map(is_cut, returned))  # by a hook
        self.attached = [value.requires_grad for value in self.shared]
        self.at_end = encode(self.shared)  # nan equals itself there
        return out, self.shared[len(returned) :]


def make_case(rng: Draw) -> Case:
    """Return a case whose largest lie is negative, then positive, each among others; the last is 0.

    The largest is at the very end, then in the middle, in no first or last row; the others of its sign are larger than those
    of the other sign. In the second case they are tiny, in float64; in the third one is infinite, and one is nan throughout.
    """
    shape, reuses = _SHAPES[rng.turn], rng.turn == 2
    x = torch.tensor(rng.choices((-3.0, -2.0, 2.0, 3.0), k=torch.Size(shape).numel())).reshape(shape)
    width, middle = shape[-1], x.numel() // 2 - (x.numel() == 2)
    weights = [whole(rng, width**2).reshape(width, width) for _ in range(2)]
    lies = []
    for n in range(4 if reuses else 3):
        sizes = [rng.randint(1, 2) + 2 * (i % 2) for i in range(x.numel())]
        lie = torch.tensor([float(size) * (-1) ** (n + i) for i, size in enumerate(sizes)])
        lie[middle if n % 2 else -1] = (rng.randint(5, 9) + 1 / 16) * (-1) ** (n + 1)
        lies.append(lie.reshape(shape))
    lies[-1].zero_()
    if rng.turn == 1:
        x, weights, lies = x.double(), [w.double() for w in weights], [lie.double() * 2**-30 for lie in lies]
    if reuses:
        lies[1][lies[1] > 4] = torch.inf
        lies[2].fill_(torch.nan)
    # Exact on whole numbers; names that begin alike, of which the one and then the other is skipped.
    skip, act = ((nn.ReLU6, nn.ReLU), (nn.ReLU, nn.ReLU6), (nn.Identity, Layers.Rectify))[rng.turn]
    return Case(x, weights, skip, lies, reuses, act)


def observe(prove: Any, case: Case) -> dict[str, Any]:
    """Let the answer examine an honest network, one that lies, one whose first child has children, and one without gradients."""
    nets = Net(case), Net(case, case.lies), Net(case, nested=True), Net(case)
    onlookers = [Onlooker(net) for net in nets]
    results = [prove(net, case.x, case.skip) for net in nets[:3]]
    with torch.no_grad():
        results.append(prove(nets[3], case.x, case.skip))
    saw: dict[str, Any] = dict(
        zip(("honest", "lying", "nested", "no_grad"), map(_plain, results), strict=True)
    )
    saw["kind"] = type(results[0]).__name__
    saw["is_list"] = all(isinstance(result, list) for result in results)
    saw |= {"calls": [net.calls for net in nets], "root_calls": [o.root_calls for o in onlookers]}
    saw["overwritten"] = any(encode(net.shared) != net.at_end for net in nets if net.calls)
    saw["cut"] = any(net.cut for net in nets)
    saw["detached"] = any([v.requires_grad for v in net.shared] != net.attached for net in nets)
    return saw | {"left": max(o.others() for o in onlookers)}


def _plain(value: Any) -> Any:
    """Return lists and tuples of any kind as plain ones, and numbers of numpy as those of Python."""
    if isinstance(value, list | tuple):
        return rebuilt(value, map(_plain, value))
    return value.item() if isinstance(value, numpy.generic) else value


PROBE = Probe("05.2", "prove", make_case, observe, cases=3)
