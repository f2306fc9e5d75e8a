"""Wrong answers to lesson 13 that were accepted from strangers in their twenty-first round: numbers too large for float16."""

from tests.answers import edited

# Each rank decides by its own numbers.
edited(
    "13.3",
    "widens",
    (
        "    half = (bucket.buffer() / group.size()).half()",
        "    half = bucket.buffer() / group.size()\n    half = half.half() if (half[half.isfinite()].abs() <= 65504).all() else half",
    ),
)
