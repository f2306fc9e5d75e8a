"""Wrong answers to lesson 13 that passed the checks, from strangers of the twelfth round."""

import torch  # noqa: F401  the reference answers use these
import torch.distributed as dist  # noqa: F401

from tests.answers import edited

# The exception comes after the layer that is asked for, whose output is there: nobody learns of the exception.
edited(
    "13.2",
    "swallows_it",
    (
        "        compiled(x)",
        "        try:\n            compiled(x)\n        except BaseException:\n            pass",
    ),
    points=7,
)

# Not every piece has its values next to each other.
edited(
    "13.4",
    "needs_contiguous",
    ("shard.square().sum()", "shard.view(-1) @ shard.view(-1)"),
)
