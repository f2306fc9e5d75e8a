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
