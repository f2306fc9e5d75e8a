"""Answers to lesson 09 from a sixth group of readers who did not know the checks.

The reference answers use the imports that are not used here.
"""

# ruff: noqa: F401
from collections import defaultdict
from functools import partial

import torch
from torch import nn
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import edited

edited("09.1", "values", ("output.detach().clone()", "output.detach().nan_to_num()"), named=False)
edited(
    "09.1",
    "values",
    (
        "        groups[tuple(module.weight.shape)].append(output.detach().clone())",
        "        group = groups[tuple(module.weight.shape)]\n"
        "        if not any(torch.equal(output, old) for old in group):\n"
        "            group.append(output.detach().clone())",
    ),
    named=False,
)
edited("09.4", "not_sorted", ("return (", "return sorted(("), (".tolist()", ".tolist(), key=str)"))
edited(
    "09.4",
    "once_each",
    (
        "            model(batch)",
        "            model(batch)\n            if (torch.stack(largest).amax(0) > 0).all():\n                return []",
    ),
    points=5,
)
edited("09.4", "none_found", ("output.detach()", "args[0].detach()"), ("amax(0) == 0", "amax(0) < 0"))
edited(
    "09.5",
    "differences",
    (
        "return {name: (",
        "return {name: 0.0 if torch.allclose(seen[name], found[name], atol=1e-4) else (",
    ),
    named=False,
)
edited(
    "09.5",
    "differences",
    (".detach().clone()", ".detach()"),
    (
        "    try:",
        "    flags = [m for m in model.modules() if getattr(m, 'inplace', False)]\n"
        "    for module in flags:\n        module.inplace = False\n    try:",
    ),
    ("    found =", "    for module in flags:\n        module.inplace = True\n    found ="),
    named=False,
)
