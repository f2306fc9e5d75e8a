"""Wrong answers to lesson 14 that passed the checks, from strangers of the twelfth round."""

from contextlib import ExitStack, contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from hookedu import record  # noqa: F401
from tests.answers import edited

# An argument may be one that has to be named.
edited("14.1", "kwargs_by_position", ("model(*args, **kwargs)", "model(*args, *kwargs.values())"))

# Only where the prompts differ, and at the last word, which a word in between does not need to be.
edited(
    "14.4",
    "only_differing",
    (
        "            with block.register_forward_hook(patch):",
        "            if clean[0, place] == corrupted[0, place] and place < clean.shape[1] - 1:\n"
        "                continue\n"
        "            with block.register_forward_hook(patch):",
    ),
)

# Gradients are on inside, whatever the caller chose.
edited(
    "14.5",
    "grad_inside",
    (
        "    with model.blocks[number].register_forward_hook(add):",
        "    with torch.enable_grad(), model.blocks[number].register_forward_hook(add):",
    ),
    points=17,
)
