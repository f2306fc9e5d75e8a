"""An answer to lesson 06 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import edited

# Nothing behind an empty input is looked at.
edited(
    "06.1",
    "stops_early",
    ("            count =", "            if not value.numel():\n                break\n            count ="),
    points=6,
)
