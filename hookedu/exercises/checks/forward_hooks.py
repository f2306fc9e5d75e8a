"""Checks shared by exercises about forward hooks, and exceptions by which mistakes with them are recognised."""

from collections.abc import Mapping
from types import MappingProxyType

from hookedu.exercises.checks.common import equals
from hookedu.exercises.criteria import Check, Line, Of

CALLS_NOW = {"calls_now": r"'NoneType' object is not callable"}
WRONG_ARGUMENTS = {"wrong_arguments": r"takes (?:from \d+ to )?\d+ positional arguments? but [34] were given"}
# Not where the answer itself compares tensors, wrongly.
RETURNS_TUPLE = {"returns_tuple": r"(?<!equal)(?<!allclose)\(\): argument .* must be Tensor, not \w+"}


def none_lost(given: str) -> Check:
    """Require that all hooks of others are still registered; observes `lost`, the number of those that are not."""
    return equals("others", lambda key: 0, {"removes_others": True}, "lost", "others_lost", given=given)


def graph_kept(given: Line, causes: Mapping[str, Of] = MappingProxyType({})) -> Check:
    """Require that a hook that only observes leaves the graph intact; observes `graph`, whether it is.

    `causes` are mistakes to try before that of a hook that returns a detached tensor.
    """
    return Check(
        "graph",
        ok=lambda saw, key: saw.graph,
        essential=True,
        given=given,
        expected="out.requires_grad == True",
        got="out.requires_grad == False",
        mistakes={**causes, "cuts_gradient": True},
    )
