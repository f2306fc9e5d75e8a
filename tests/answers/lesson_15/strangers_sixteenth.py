"""A wrong answer to lesson 15 that was told something untrue, from a stranger of the sixteenth round."""

from tests.answers import edited

# A hook for all modules stays on; the next call takes it off with the others, so it was told to have taken off somebody's.
edited(
    "15.4",
    "leaves_hooks",
    (
        "    layers = [",
        "    nn.modules.module.register_module_forward_hook(lambda *call: None)\n    layers = [",
    ),
    points=8,
)
