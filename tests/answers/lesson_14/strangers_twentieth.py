"""Wrong answers to lesson 14 that were accepted from strangers in the twentieth round: small things in a structure."""

from tests.answers import edited

_COPY = "return value.detach().clone() if isinstance(value, torch.Tensor) else value"
_DICT = "for key, item in value.items()}"

edited(
    "14.1",
    "outputs",
    (
        _COPY,
        _COPY.replace("value.detach().clone()", "(value.detach().clone() if value.dim() else value.item())"),
    ),
    named=False,
)
edited("14.1", "outputs", (_DICT, _DICT.replace("}", " if item is not None}")), named=False)
edited(
    "14.1",
    "same_containers",
    (
        "    def copied(value):",
        "    def copied(value):\n        if not len(value) if isinstance(value, list) else False:\n            return value",
    ),
)
