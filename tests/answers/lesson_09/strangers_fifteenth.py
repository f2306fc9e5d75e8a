"""What the fifteenth strangers tried on lesson 09: maps without their edges."""

import torch

from tests.answers import edited, mistake


@mistake("09.4", "part_of_the_map")
def dead_channels(model, relu, batches):
    alive, everyone = set(), set()

    def look(module, args, output):
        h, w = output.shape[2:]
        middle = output[:, :, h // 4 : h - h // 4, w // 4 : w - w // 4]
        everyone.update(range(output.shape[1]))
        alive.update(middle.nonzero()[:, 1].tolist())

    with relu.register_forward_hook(look), torch.no_grad():
        for batch in batches:
            model(batch)
    return sorted(everyone - alive)


edited(
    "09.4",
    "part_of_the_map",
    ("output.detach()", "(output if output.shape[-2] < 3 else output[..., 1:, 1:]).detach()"),
)
