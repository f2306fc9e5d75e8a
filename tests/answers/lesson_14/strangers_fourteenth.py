"""Wrong answers to lesson 14 that passed the checks, from strangers of the fourteenth round."""

from contextlib import ExitStack  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

from tests.answers import edited

# The copy is of the dtype that the numbers would have by default.
edited("14.1", "outputs", ("value.detach().clone()", "torch.tensor(value.tolist())"), named=False)

# The hook takes itself off when it fires: a run that fails before its block leaves it on.
edited(
    "14.3",
    "left_after_error",
    (
        '        kept["clean"] = output.detach().clone()\n',
        '        kept["clean"] = output.detach().clone()\n        handle.remove()\n',
    ),
    (
        "    with block.register_forward_hook(keep):\n        model(clean)\n",
        "    handle = block.register_forward_hook(keep)\n    model(clean)\n",
    ),
    points=4,
)
