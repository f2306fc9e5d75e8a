"""What the fourteenth strangers tried on lesson 06: names with a percent sign, one tensor twice, and empty tensors."""

from tests.answers import edited

edited(
    "06.1",
    "no_name",
    (
        'f"{name}: {count} nan in an input of {value.numel()} numbers"',
        '(name + ": %d nan in an input of %d numbers") % (count, value.numel())',
    ),
    points=6,
)
edited(
    "06.2",
    "changes_the_rest",
    (
        "((args[0] - mean) / std, *args[1:])",
        "tuple((arg - mean) / std if arg is args[0] else arg for arg in args)",
    ),
    points=3,
)
edited(
    "06.2",
    "changes_the_rest",
    ("*args[1:])", '*(a.to(args[0].dtype) if hasattr(a, "dtype") else a for a in args[1:]))'),
    points=3,
)
edited(
    "06.3",
    "keeps_tensors",
    ("isinstance(v, torch.Tensor) else", "isinstance(v, torch.Tensor) and len(v.ravel()) else"),
)
