"""What is observed of 05.1, `capture(module, seen)`: two runs of a network, then a third without the hook."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.onlooker import is_cut
from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks, whole

# Kernels and pictures for the network of example E3, each filled with a single number.
Case = namedtuple("Case", "kernels pictures")


def observe(capture: Any, case: Case) -> dict[str, Any]:
    """Capture the convolution; run the network on both pictures, remove the hook, and run it once more."""
    conv, seen = nn.Conv2d(1, 2, 3, bias=False), []
    with torch.no_grad():
        conv.weight.copy_(case.kernels.reshape(2, 1, 1, 1))
    net = nn.Sequential(conv, nn.MaxPool2d(2), nn.Flatten())
    handle = capture(conv, seen)
    saw = {"early": len(seen), "hooks": module_hooks(net), "handle": handle}
    pictures = [torch.full((1, 1, 4, 4), value) for value in case.pictures]
    outs = [net(x) for x in pictures]
    saw |= {"out": [copies(out.squeeze(0)) for out in outs], "graph": not any(map(is_cut, outs))}
    saw["seen"] = [list(pair) if isinstance(pair, tuple) else pair for pair in copies(seen)]
    remove_handle(handle)
    net(pictures[0])
    return saw | {"after_removal": len(seen) - len(saw["seen"])}


PROBE = Probe("05.1", "capture", lambda rng: Case(whole(rng, 2), whole(rng, 2).tolist()), observe)
