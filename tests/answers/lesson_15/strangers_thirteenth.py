"""Wrong answers to lesson 15 that passed the checks, from strangers of the thirteenth round."""

from contextlib import contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from tests.answers import edited

# The sample with the most bad numbers.
edited(
    "15.3",
    "last_sample",
    ("bad.nonzero()[0].item()", "(~output.isfinite()).flatten(1).sum(1).argmax().item()"),
)

# Large numbers of float64 become inf.
edited("15.3", "adds_up", ("output.isfinite()", "output.float().isfinite()"))

# Modules with children as well: a container may compute something itself.
edited("15.3", "only_containers", ("if not list(module.children())", "if True"))

# Weights are cleaned for good.
edited(
    "15.3",
    "values",
    ("    try:\n", "    for param in model.parameters():\n        param.data.nan_to_num_()\n    try:\n"),
    points=6,
)

# Without the dimension of samples, where there is one.
edited("15.3", "raised", (".all(dim=1)", ".all(dim=1).squeeze()"), named=False)

# A result that is finite decides, in evaluation mode.
edited(
    "15.3",
    "asks_the_end",
    ("        model(x)\n", "        out = model(x)\n"),
    ("if found else None", "if found and (model.training or not out.isfinite().all()) else None"),
)
