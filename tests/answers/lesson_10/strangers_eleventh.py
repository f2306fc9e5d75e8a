"""Answers to lesson 10 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import edited

# A model may be a single layer, and its name is then the empty string.
edited("10.3", "not_itself", ("return found[0] if found else None", "return (found or [None])[0] or None"))
edited("10.3", "not_itself", ("if not list(module.children()):", "if name and not list(module.children()):"))
