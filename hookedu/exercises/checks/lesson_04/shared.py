"""A check shared by the exercises of lesson 04, and exceptions by which mistakes in two of them are recognised."""

from hookedu.exercises.checks.common import CALLS_NOW, HOOKS_FROZEN, NO_ARGUMENT
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.observation import show_kind

# Mistakes in registering a hook on every parameter.
REGISTERING = CALLS_NOW | NO_ARGUMENT | HOOKS_FROZEN


def handles_given(call: str) -> Check:
    """Require a non-empty list of handles; observes `handles`, and `off`: whether removing them undid everything."""
    return Check(
        "handles",
        ok=lambda saw, key: isinstance(saw.handles, list) and saw.handles and saw.off,
        points=1,
        given=f"handles = {call}",
        expected=Say("handles_undo"),
        got=lambda saw, key: show_kind(saw.handles),
        mistakes={"no_handles": True},
    )
