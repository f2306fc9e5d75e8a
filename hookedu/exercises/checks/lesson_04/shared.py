"""A check shared by the exercises of lesson 04, and exceptions by which mistakes in two of them are recognised."""

from typing import Any

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, HOOKS_FROZEN, NO_ARGUMENT
from hookedu.exercises.conduct import ATTRIBUTES, OTHERS
from hookedu.exercises.criteria import Check, Line, Of, Say
from hookedu.exercises.observation import Opaque, show_kind

# Mistakes in registering a hook on every parameter.
REGISTERING = CALLS_NOW | NO_ARGUMENT | HOOKS_FROZEN


def misses_parameters(saw: Any, key: Any) -> bool:
    """Check whether some parameters that learn carry hooks and others do not."""
    return any(saw.hooks.values()) and not all(saw.hooks[name] for name in key.trained)


def removes_itself(saw: Any, key: Any) -> bool:
    """Check whether fewer hooks are on after the passes than before."""
    return sum(saw.kept.values()) < sum(saw.hooks.values())


def undoes_first(saw: Any) -> bool:
    """Check whether a call removed hooks of an earlier one, or its attributes: the conduct says so."""
    return any(kind in (OTHERS, ATTRIBUTES) for kind, _ in saw.conduct)


def never_ran(saw: Any, key: Any) -> bool:
    """Check whether the answer is a generator, so that none of its code has run."""
    return saw.handles == Opaque("generator")


def one_memory(calls: Line, ok: Of) -> Check:
    """Require that a further call, for something else, leaves the hooks of the first call as they were."""
    return Check(
        "beside",
        ok=ok,
        essential=True,
        given=calls,
        expected=Say("as_alone"),
        got=Say("not_as_alone"),
        mistakes={"one_memory": True},
    )


def handles_given(call: str) -> Check:
    """Require a list of handles, none of which belongs to an earlier call; `off`: removing them undid everything."""

    def no_more(saw: Any) -> bool:
        return len(saw.handles) <= sum(saw.hooks.values())

    def stays(saw: Any, key: Any) -> bool:
        return not saw.off and saw.handles != [] and saw.handles == [HANDLE] * len(saw.handles)

    return Check(
        "handles",
        ok=lambda saw, key: isinstance(saw.handles, list) and saw.handles and saw.off and no_more(saw),
        points=1,
        given=f"handles = {call}",
        expected=Say("handles_undo"),
        got=[
            Say("hooks_stay", when=stays, given_back=lambda saw, key: show_kind(saw.handles)),
            Say(
                "too_many",
                when=lambda saw, key: saw.off and not no_more(saw),
                n=lambda saw, key: len(saw.handles),
                hooks=lambda saw, key: sum(saw.hooks.values()),
            ),
            lambda saw, key: show_kind(saw.handles),
        ],
        mistakes={"no_handles": lambda saw, key: not (isinstance(saw.handles, list) and saw.off)},
    )
