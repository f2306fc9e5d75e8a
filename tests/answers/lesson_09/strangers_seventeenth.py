"""What the seventeenth strangers tried on lesson 09: shared layers, derived classes, the order of sets, hooks left on."""

import torch

from tests.answers import edited, mistake

_RECURSION = """    def attach(module):
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))
        for child in module.children():
            attach(child)

"""
_APPLY = """    def attach(module):
        if isinstance(module, nn.Conv2d):
            handles.append(module.register_forward_hook(keep))

"""
_LOOP = "for module in model.modules():\n            if isinstance(module, nn.Conv2d):\n                "
_LOOP += "handles.append(module.register_forward_hook(keep))"

edited("09.1", "two_names", ("    try:\n", _RECURSION + "    try:\n"), (_LOOP, "attach(model)"))
edited("09.1", "two_names", ("    try:\n", _APPLY + "    try:\n"), (_LOOP, "model.apply(attach)"))
edited("09.1", "exact_type", ("isinstance(module, nn.Conv2d)", "type(module) is nn.Conv2d"))


@mistake("09.4", "not_sorted")
def dead_channels(model, relu, batches):
    every, alive = set(), set()

    def keep(module, args, output):
        every.update(range(output.shape[1]))
        alive.update(output.detach().amax((0, 2, 3)).nonzero().flatten().tolist())

    handle = relu.register_forward_hook(keep)
    try:
        with torch.no_grad():
            for batch in batches:
                model(batch)
    finally:
        handle.remove()
    return list(every - alive)


@mistake("09.4", "quiet_somewhere")
def dead_channels(model, relu, batches):
    """A channel counts as dead if it is 0 throughout one of the calls for a batch, in each batch."""
    result = None
    for batch in batches:
        calls = []
        handle = relu.register_forward_hook(lambda m, a, out: calls.append(out.detach().clone()))
        try:
            with torch.no_grad():
                model(batch)
        finally:
            handle.remove()
        dead = {c for out in calls for c in range(out.shape[1]) if not out[:, c].any()}
        result = dead if result is None else result & dead
    return sorted(result)


# The hooks come off after the extractor: while it is made, that of a container keeps what the tracer puts through.
edited(
    "09.5",
    "traced",
    ("model(x)\n", "model(x)\n        found = create_feature_extractor(model, list(names))(x)\n"),
    (
        "            handle.remove()\n    found = create_feature_extractor(model, list(names))(x)",
        "            handle.remove()",
    ),
)
