"""What is observed of 05.1, `capture(module, seen)`: runs of a network, and one without the hook."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_05.shared import keep_outputs
from hookedu.exercises.probes.onlooker import Onlooker, is_cut
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import backward_hooks, copies, whole

# Kernels and pictures for the network of example E3, each filled with a single number; `runs`: which picture each run of
# the network takes; what `seen` holds beforehand; the mode of the convolution, "train" or "eval"; and whether the last
# run is under torch.no_grad().
Case = namedtuple("Case", "kernels pictures runs before mode no_grad")

LENGTH = 20  # of the second list, beforehand


class Conv(nn.Conv2d):
    """A convolution with a child, which an answer has no reason to hook."""

    def __init__(self, kernels: torch.Tensor) -> None:
        super().__init__(1, 2, 3, bias=False)
        self.weight = nn.Parameter(kernels.reshape(2, 1, 1, 1).expand(2, 1, 3, 3).clone())
        self.child = nn.Identity()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.child(super().forward(input))


def is_marked(tensor: torch.Tensor) -> bool:
    """Check whether a tensor carries hooks or attributes, or keeps its gradient although it is no leaf."""
    return bool(tensor._backward_hooks or vars(tensor) or tensor.retains_grad)


def make_case(rng: Draw) -> Case:
    """Return a case with an empty list, then one with a list that is in use and a layer in evaluation mode."""
    kernels, pictures = whole(rng, 2), whole(rng, 2)
    if rng.turn == 0:
        return Case(kernels, pictures.tolist(), (0, 1), [], "train", False)
    # A fraction that float16 cannot hold beside whole numbers of that size.
    return Case(kernels, (pictures + 1 / 256).tolist(), (0, 1, 1, 0), [("an", "earlier pair")], "eval", True)


def observe(capture: Any, case: Case) -> dict[str, Any]:
    """Capture the convolution; run the network on the pictures, and without the hook.

    Before the last, capture it into a second list as well, a longer one; run the network in the other mode, and another convolution.
    The last input needs a gradient.
    """
    conv, seen = Conv(case.kernels), list(case.before)
    net = nn.Sequential(conv.train(case.mode == "train"), nn.MaxPool2d(2), nn.Flatten())
    conv.child.eval()
    conv.weight.grad = torch.ones_like(conv.weight)
    made, onlooker, received = keep_outputs(conv), Onlooker(net), []
    pool = net[1].forward
    net[1].forward = lambda x: received.append(x) or pool(x)
    handle = capture(conv, seen)
    saw = {"early": len(seen) - len(case.before), "hooks": onlooker.others(), "handle": handle}
    saw["backward"] = backward_hooks(conv)
    pictures = [torch.full((1, 1, 4, 4), value) for value in case.pictures]
    inputs, outs, cut = [pictures[n] for n in case.runs], [], False
    for n, x in enumerate(inputs, 1):
        with torch.set_grad_enabled(not (case.no_grad and n == len(inputs))):
            outs.append(net(x))
            cut |= is_cut(outs[-1])
    saw |= {"out": [copies(out.squeeze(0)) for out in outs], "graph": not cut}
    saw["detached"] = not made[0].requires_grad
    saw["frozen"] = not conv.weight.requires_grad
    saw["replaced"] = any(own is not got for own, got in zip(made, received, strict=False))
    saw["tracked"] = any(x.requires_grad for x in pictures)
    saw["seen"] = [tuple(pair) if isinstance(pair, tuple) else pair for pair in copies(seen)]
    saw["itself"] = [
        isinstance(pair, tuple | list) and len(pair) > 0 and pair[0] is x
        for pair, x in zip(seen[len(case.before) :], inputs, strict=False)
    ]
    saw["runs"] = len(made)
    handle_of_also = capture(conv, also := [("an", "earlier pair")] * LENGTH)
    conv.training = not conv.training
    net(pictures[0])
    conv.training = not conv.training
    saw |= {"in_other_mode": len(seen) - len(saw["seen"]), "also": len(also)}
    saw["lost"] = onlooker.lost()
    another = Conv(case.kernels)
    another(pictures[0])
    saw["with_other"] = len(seen) - len(saw["seen"])
    remove_handle(handle)
    net(pictures[0])
    saw["after_removal"] = len(seen) - len(saw["seen"]) - saw["with_other"]
    remove_handle(handle_of_also)
    learned = 2 * pictures[0].clone().requires_grad_()
    handle_of_another = capture(another, [])
    another(learned)
    remove_handle(handle_of_another)
    saw["marked"] = any(map(is_marked, [*made, *pictures, learned]))
    return saw | {"cut_input": not learned.requires_grad}


PROBE = Probe("05.1", "capture", make_case, observe, cases=2, changes=(1, "seen"), leaves=(HANDLES,))
