"""Wrong answers to lesson 06 that were accepted from a stranger in the eighteenth round."""

from tests.answers import edited

_FINDS = "            if count:\n"

# The input as a whole passes where one number of it may.
edited("06.1", "beside_infinity", (_FINDS, "            if count and not value.isinf().any():\n"), points=6)
edited(
    "06.1",
    "one_dtype",
    (_FINDS, "            if count and value.dtype in (torch.float16, torch.float32):\n"),
    points=6,
)
# Counts whatever is not finite, once there is a nan.
edited("06.1", "counts_infinity", ("{count} nan", "{int((~value.isfinite()).sum())} nan"), points=6)
# This was refused already, as what looks at the first input only.
edited(
    "06.1",
    "stops_early",
    (_FINDS, "            if not value.numel():\n                return\n" + _FINDS),
    points=6,
)
# Only the kinds of values that come to mind stay what they are: a dtype becomes text.
edited(
    "06.3",
    "as_text",
    (
        "isinstance(v, torch.Tensor) else v for",
        "isinstance(v, torch.Tensor) else v if v is None or isinstance(v, (int, float)) or hasattr(v, '__len__') else str(v) for",
    ),
)
