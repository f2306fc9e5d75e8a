"""Wrong answers to lesson 15 that passed the checks, from strangers of the twelfth round."""

from contextlib import contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from tests.answers import edited

# One dictionary for all calls, copied at the end of each: a layer that this call skipped is in it.
edited(
    "15.1",
    "other_rows",
    ("rows, handles = [], []", "rows, handles, latest = [], [], {}"),
    ("entry = rows[-1][name] =", "entry = latest[name] ="),
    (
        "model.register_forward_pre_hook(lambda model, args: rows.append({}))",
        "model.register_forward_hook(lambda model, args, output: rows.append(dict(latest)))",
    ),
)

# None for a norm that is too small for this threshold.
edited("15.2", "none_too_often", ("if size else None", "if size > 1e-6 else None"))

# A small number is added to the divisor.
edited("15.2", "adds_to_divisor", ("moved / size if size", "moved / (size + 1e-8) if size"))

# 0.0 for a parameter that was 0 and has no gradient.
edited(
    "15.2",
    "no_none",
    ("if size else None", "if size else None if param.grad is not None else 0.0"),
)

# A tied parameter has two entries.
edited(
    "15.2",
    "steps",
    ("in model.named_parameters())", "in model.named_parameters(remove_duplicate=False))"),
    ("in model.named_parameters():", "in model.named_parameters(remove_duplicate=False):"),
    named=False,
)

# Buffers, which are no parameters, have entries.
edited(
    "15.2",
    "steps",
    ("in model.named_parameters())", "in model.state_dict().items())"),
    ("in model.named_parameters():", "in model.state_dict().items():"),
    named=False,
)
