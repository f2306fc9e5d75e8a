"""What is observed of 05.4, `steer(module, direction, strength)`: runs, backward, and a run without the hook."""

from collections import OrderedDict, namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_05.shared import keep_outputs
from hookedu.exercises.probes.onlooker import Onlooker
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import attempted, backward_hooks, copies, linear, whole

# Input, the push, the weights of two square layers, and the mode of the first, "train" or "eval"; one run is in the other.
Case = namedtuple("Case", "x direction strength first second mode")


class Layer(nn.Linear):
    """A linear layer with a child, which an answer has no reason to hook."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__(2, 2)
        self.weight, self.bias = (
            nn.Parameter(weight.clone()),
            nn.Parameter(torch.zeros(2, dtype=weight.dtype), requires_grad=False),
        )
        self.child = nn.Identity()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.child(super().forward(input))


def make_case(rng: Draw) -> Case:
    """Return a case in which the layers do not cancel a push, each time with another thing that may matter.

    A batch of two, then one vector, then rank 3 in float64, then evaluation mode, a negative strength, and one of 0, and
    last a push that is another for each row.
    """
    while True:
        x, first, second = (whole(rng, 4).reshape(2, 2) for _ in range(3))
        if min(first.det().abs(), second.det().abs()) > 0.5:
            break
    strength, x = float(rng.randint(2, 5)), (x, x[0], x[None], x, x, x, x[None])[rng.turn]
    tensors = x, whole(rng, 2), first, second
    if rng.turn == 2:
        strength, tensors = strength + 0.5, tuple(t.double() for t in tensors)
    x, direction, first, second = tensors
    direction = direction[:, None] if rng.turn == 6 else direction
    strength *= {4: -1, 5: 0}.get(rng.turn, 1)
    return Case(x, direction, strength, first, second, ("train", "eval")[rng.turn == 3])


def later_inputs(x: torch.Tensor) -> list[torch.Tensor]:
    """Return another input of the same shape, a batch with one row more, and one of rank 4, two in its second dim.

    Of those of rank 3 the others have as many rows.
    """
    rows = x.detach().reshape(-1, 2)
    first = rows[:1]
    if x.dim() == 3:
        x = x.detach()
        return [x + 1, torch.cat([x, x - 1]), torch.stack([x - 1, x])]
    return [x.detach() + 1, torch.cat([rows, first - 1]), torch.cat([first - 1, first])[None, :, None]]


def _relu(steer: Any, x: torch.Tensor, direction: torch.Tensor, strength: float) -> torch.Tensor:
    """Return the output of a steered ReLU."""
    relu = nn.ReLU()
    handle = steer(relu, direction, strength)
    out = copies(relu(x))
    remove_handle(handle)
    return out


def observe(steer: Any, case: Case) -> dict[str, Any]:
    """Steer the first layer; run the network, backward, and the network four times; run once more without the hook.

    The third run is under torch.no_grad(), the last in the other mode. Runs on later inputs follow, and before the
    hook is removed, a second steers as well, in the flipped direction. Another layer of the same class runs before it,
    and a module without parameters is steered by itself.
    """
    fc1, fc2 = Layer(case.first), linear(case.second).to(case.second.dtype)
    net, x = nn.Sequential(OrderedDict(fc1=fc1, fc2=fc2)), case.x.requires_grad_()
    fc1.train(case.mode == "train").child.eval()
    made, onlooker, flipped = keep_outputs(fc1), Onlooker(net), case.direction.flip(0)
    handle = steer(fc1, case.direction, case.strength)
    saw = {"handle": handle, "hooks": onlooker.others(), "backward": backward_hooks(fc1)}
    steered = net(x) + 0 * sum(p.sum() for p in net.parameters())  # so that backward never lacks a graph
    steered.sum().backward()
    saw |= {"steered": copies(steered), "x_grad": copies(x.grad), "runs": [copies(steered)]}
    for grads in (True, False, True):
        with torch.set_grad_enabled(grads):
            saw["runs"].append(copies(net(x)))
    fc1.training = not fc1.training
    saw["runs"].append(copies(net(x)))
    fc1.training = not fc1.training
    saw["forwards"] = len(made)
    saw["output"] = copies(made[0]) if made else None
    saw["weights"] = {
        f"{n}.{k}": copies(getattr(m, k)) for n, m in (("fc1", fc1), ("fc2", fc2)) for k in ("weight", "bias")
    }
    saw["apart"] = copies(Layer(case.first)(x))
    saw["later"] = [copies(net(one)) for one in later_inputs(x)]
    # Turned back, it is the direction as it was, which an answer may have changed in place: that has a message of its own.
    saw["relu"] = attempted(lambda: _relu(steer, x, flipped.flip(0), case.strength))
    handle_of_second = steer(fc1, flipped, case.strength)
    saw |= {"both": copies(net(x)), "lost": onlooker.lost()}
    for one in (handle, handle_of_second):
        remove_handle(one)
    return saw | {"after": copies(net(x))}


PROBE = Probe("05.4", "steer", make_case, observe, cases=7, leaves=(HANDLES,))
