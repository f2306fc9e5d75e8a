"""Wrong answers to lesson 15 that passed the checks or got an untrue message, from strangers of the fifteenth round."""

from contextlib import contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

from tests.answers import edited

# A norm is taken for 0 where it is far below what a float32 resolves beside 1.
edited("15.2", "none_too_often", ("if size else None", "if size > 1e-12 else None"))

# A parameter without a gradient has no ratio.
edited("15.2", "none_too_often", ("if size else None", "if size and param.grad is not None else None"))

# Copies wait in line: the copy of a step that raised is taken for that of the next one.
edited(
    "15.2",
    "stale",
    ("steps, before = [], {}", "steps, waiting = [], []"),
    (
        "before.update((name, param.detach().clone()) for name, param in model.named_parameters())",
        "waiting.append({name: param.detach().clone() for name, param in model.named_parameters()})",
    ),
    ("        ratios = {}\n", "        ratios, before = {}, waiting.pop(0)\n"),
)

# Copies are taken only where none are waiting.
edited(
    "15.2",
    "stale",
    ("        before.update(", "        before or before.update("),
    ("        steps.append(ratios)\n", "        steps.append(ratios)\n        before.clear()\n"),
)

# What a layer puts out is kept by name, the last time it ran, and searched in the order in which layers first ran.
edited(
    "15.3",
    "last_run",
    ("found, handles = [], []", "kept, handles = {}, []"),
    (
        "        bad = ~output.isfinite().flatten(1).all(dim=1)\n"
        "        if bad.any():\n"
        "            found.append((name, bad.nonzero()[0].item()))\n",
        "        kept[name] = ~output.isfinite().flatten(1).all(dim=1)\n",
    ),
    (
        "    return found[0] if found else None",
        "    return next(((name, bad.nonzero()[0].item()) for name, bad in kept.items() if bad.any()), None)",
    ),
)

# Sample 0 is taken for no sample.
edited(
    "15.3", "zero_is_false", ("found[0] if found else None", "found[0] if found and found[0][1] else None")
)
