"""What is observed of 11.4, `channel_effect(model, layer, channel, images, labels)`, at two layers."""

from typing import Any

import torch

from hookedu.exercises.probes.lesson_11.shared import Net, call_before, make_net
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, someones

# Layer, channel, pictures: a channel in the middle, the last one, and the first, of a layer without a ReLU after it.
_CALLS = (("conv2", 1, 4), ("relu1", 2, 4), ("mix", 0, 1))


def _case(rng: Draw) -> tuple[Net, str, int]:
    """Return (net, layer, channel)."""
    layer, channel, pictures = _CALLS[rng.turn]
    # At least as many pictures as channels up to this one: switching off a picture instead raises no IndexError.
    model, images, labels, _ = make_net(rng, pictures=4)
    return Net(model, images[:pictures], labels[:pictures], used=rng.turn == 1), layer, channel


def observe(channel_effect: Any, case: tuple[Net, str, int]) -> dict[str, Any]:
    """Switch the channel off while somebody else's hook, which runs first, keeps each output and a copy of it."""
    net, layer, channel = case
    module, kept = net.model.get_submodule(layer), []
    arguments = net.model, module, channel, net.images, net.labels

    @someones
    def keep(module: Any, args: Any, output: torch.Tensor) -> None:
        kept.append((output, output.detach().clone()))

    module.register_forward_hook(keep)
    before = call_before(net, channel_effect, *arguments)
    result = copies(channel_effect(*arguments))
    return {"before": before, "result": result, "spoilt": sum(not torch.equal(*pair) for pair in kept)}


PROBE = Probe("11.4", "channel_effect", _case, observe, cases=3)
