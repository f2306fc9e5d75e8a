"""Answers to lesson 05 of strangers who had not read the checks, in their fourteenth round."""

from tests.answers import edited

# What came in is changed in place.
edited("05.1", "detaches_input", ("args[0]", "args[0].detach_()"))

# The name of a class inside another one is the last part of its full name.
edited("05.2", "names", ("type(module).__name__", "type(module).__qualname__"), named=False)
