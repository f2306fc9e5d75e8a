"""Wrong answers to lesson 15 that passed the checks, from strangers of the fourteenth round."""

from functools import partial  # noqa: F401  the reference answers use these

from tests.answers import edited

# In the layer at fault, samples with nan go before those with inf.
edited(
    "15.3",
    "last_sample",
    (
        "        bad = ~output.isfinite().flatten(1).all(dim=1)\n",
        "        bad = output.isnan().flatten(1).any(dim=1)\n"
        "        if not bad.any():\n            bad = output.isinf().flatten(1).any(dim=1)\n",
    ),
)
