"""What is observed of 06.4, `standardise(conv)`: a convolution before and after one step of training."""

import random
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies

RATE = 0.5  # of the step of training

Case = namedtuple("Case", "weight bias x g")  # of a 2 -> 3 convolution with 2x2 kernels; g weights its loss


def make_case(rng: random.Random) -> Case:
    """Return a case of which only channel 0 is ordinary.

    Channel 1 is constant and the weights of channel 2 are tiny, so that the 1e-5 of the formula matters: without it
    channel 1 becomes nan, and in another position it changes channel 2.
    """

    def numbers(*shape: int, low: int = -9) -> torch.Tensor:
        values = [float(rng.randint(low, 9)) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(values).reshape(shape)

    weight = numbers(3, 2, 2, 2, low=1)
    weight[:, 0, 0, 0], weight[:, 0, 0, 1] = 11.0, -12.0  # neither variance nor mean is 0
    weight[1] = weight[1, 1, 1, 1]
    weight[2] /= 2**12
    return Case(weight, numbers(3), numbers(1, 2, 3, 3), numbers(1, 3, 2, 2))


def observe(standardise: Any, case: Case) -> dict[str, Any]:
    """Call the layer, train it for one step, call it again, and call it without the hook."""
    conv = nn.Conv2d(2, 3, 2)
    conv.load_state_dict({"weight": case.weight, "bias": case.bias})
    handle = standardise(conv)
    named = dict(conv.named_parameters())
    raw = named.get("weight_raw")
    saw = {"handle": handle, "parameters": sorted(named), "start": copies(raw)}
    output = conv(case.x)
    new = dict(conv.named_parameters()).keys() - named.keys()
    saw |= {"output": copies(output), "new_parameter": bool(new)}
    saw |= dict.fromkeys(("gradient", "again", "after_removal"))
    if not isinstance(output, torch.Tensor) or output.shape != case.g.shape:
        return saw
    (output * case.g).sum().backward()
    saw["gradient"] = copies(raw.grad) if raw is not None else None
    with torch.no_grad():  # one step of an optimizer that was created after standardise()
        for parameter in named.values():
            if parameter.grad is not None:
                parameter -= RATE * parameter.grad
        saw["again"] = copies(conv(case.x))
        remove_handle(handle)
        if raw is not None:
            raw.mul_(-1)  # without the hook the weights are not recomputed: same output
        saw["after_removal"] = copies(conv(case.x))
    return saw


PROBE = Probe("06.4", "standardise", make_case, observe)
