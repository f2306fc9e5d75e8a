"""Answers to lesson 03 of strangers who had not read the checks, in their fourteenth round."""

from tests.answers import edited

# A single number of float64 decides about the dtype where the gradient is a single number too.
edited(
    "03.1",
    "other_dtype",
    ("return grad * 2", "import torch\n\n        return grad * torch.tensor(2.0, dtype=torch.float64)"),
)
