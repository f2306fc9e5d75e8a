"""What is observed of 11.4, `channel_effect(model, layer, channel, images, labels)`, at two layers."""

import copy
import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_11.shared import Net, make_net
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, module_hooks


def _calls(rng: random.Random) -> list[tuple[Net, str, int]]:
    """Return two calls, each with one of the first three channels of a layer."""
    # As many pictures as candidate channels: switching off a picture instead raises no IndexError.
    net = make_net(rng, pictures=3)
    return [(net, layer, rng.randrange(3)) for layer in ("conv2", "relu1")]


def observe(channel_effect: Any, calls: list[tuple[Net, str, int]]) -> dict[str, Any]:
    """Switch the channels off while somebody else's hook, which runs first, keeps each output and a copy of it."""
    results, spoilt, changed, left = [], 0, 0, 0
    for net, layer, channel in calls:
        model = copy.deepcopy(net.model)  # one per layer: what an answer leaves on it has no further effect
        module, kept = model.get_submodule(layer), []

        def keep(module: Any, args: Any, output: torch.Tensor, kept: list[Any] = kept) -> None:
            kept.append((output.detach(), output.detach().clone()))

        with module.register_forward_hook(keep):
            results.append(channel_effect(model, module, channel, net.images.clone(), net.labels.clone()))
        spoilt += sum(not torch.equal(*pair) for pair in kept)
        left += module_hooks(model)
        changed += sum(not same for same in map(torch.equal, model.parameters(), net.model.parameters()))
    return {"results": copies(results), "spoilt": spoilt, "changed": changed, "left": left}


PROBE = Probe("11.4", "channel_effect", _calls, observe)
