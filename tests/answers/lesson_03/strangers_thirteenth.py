"""Answers to lesson 03 of strangers who had not read the checks, in their thirteenth round."""

from tests.answers import edited

# What is very small is thrown away.
edited(
    "03.2",
    "drops_small",
    ("if norm > max_norm:", "if norm < 1e-8:\n            return grad * 0\n        if norm > max_norm:"),
)
