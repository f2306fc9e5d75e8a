"""What the fourteenth strangers tried on lesson 08: an output of rank 0, and a class that is printed otherwise."""

from tests.answers import edited

edited(
    "08.2",
    "shapes",
    ("        shapes[name] =", "        if output.shape:\n            shapes[name] ="),
    named=False,
)
edited("08.5", "rows", ("type(module).__name__", 'repr(module).partition("(")[0]'), named=False)
