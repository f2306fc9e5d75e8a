"""Wrong answers to lesson 14 that passed the checks, from strangers of the twelfth round."""

from contextlib import ExitStack, contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from hookedu import record  # noqa: F401
from tests.answers import edited

# An argument may be one that has to be named.
edited("14.1", "kwargs_by_position", ("model(*args, **kwargs)", "model(*args, *kwargs.values())"))
