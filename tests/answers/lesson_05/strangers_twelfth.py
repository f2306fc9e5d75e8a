"""What the twelfth strangers tried on lesson 05: a parameter in an output, a tuple of one, what is only iterable, a twin."""

import torch
from torch.nn.modules.module import register_module_forward_hook

from tests.answers import edited, mistake, unnamed

edited(
    "05.5", "attached_inside", ("isinstance(value, torch.Tensor)", "type(value) is torch.Tensor"), points=8
)
edited(
    "05.5",
    "other_structure",
    (
        "append(detached(output))",
        "append(detached(output[0] if isinstance(output, tuple) and len(output) == 1 else output))",
    ),
    points=8,
)
edited(
    "05.5",
    "other_structure",
    ("        return value\n", "        return [*value] if hasattr(value, '__iter__') else value\n"),
    points=8,
)


@mistake("05.4", "other_modules")
def steer(module, direction, strength):
    def push(one, args, output):
        return output + strength * direction if type(one) is type(module) else None

    return register_module_forward_hook(push)


@unnamed("05.1", "raised")
def capture(module, seen):
    last = [None]

    def keep(module, args, output):
        if not torch.equal(output, last[0]):
            seen.append((args[0], output))
        last[0] = output

    return module.register_forward_hook(keep)
