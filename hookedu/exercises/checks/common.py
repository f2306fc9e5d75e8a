"""Checks that exercises of several lessons share, and exceptions by which mistakes with any tensor hook are recognised.

Their words stand in course/shared_words.yml.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hookedu.exercises.criteria import Check, Gives, Line, Of, Say, Throughout
from hookedu.exercises.observation import Opaque, show, show_kind, show_sequence
from hookedu.exercises.tools import same

HANDLE = Opaque("RemovableHandle")

# Mistakes recognised by what the answer raises: id -> pattern, for `Exercise.raises`.
CALLS_NOW = {"calls_now": r"'NoneType' object is not callable"}
PASSES_TENSOR = {"passes_tensor": r"'Tensor' object is not callable"}
NO_ARGUMENT = {"no_argument": r"takes 0 positional arguments but 1 was given"}
TWO_ARGUMENTS = {"two_arguments": r"missing \d+ required positional argument"}
# Mistakes in registering a hook that returns a new gradient.
MISREGISTERED = CALLS_NOW | PASSES_TENSOR | NO_ARGUMENT | TWO_ARGUMENTS
HOOKS_FROZEN = {"hooks_frozen": r"cannot register a hook on a tensor that doesn't require gradient"}


def returns(
    id: str, want: Callable[[Any], Any], points: int, mistakes: Mapping[str, bool | Of | Gives]
) -> Check:
    """Require that a function returns `want(key)` and leaves its arguments alone.

    The check for probes that observe with `probing.call`. Its exercise has the mistakes "in_place" and "no_return"
    besides those given.
    """

    def arguments(saw: Any, key: Any) -> str:
        return ", ".join(map(show, saw.arguments))

    def other_dtype(saw: Any, key: Any) -> bool:  # the numbers may print alike
        return not saw.changed and saw.result.dtype != want(key).dtype

    return Check(
        id,
        "result",
        want,
        ok=lambda saw, key: same(saw.result, want(key)) and not saw.changed,
        points=points,
        expected=[
            Say("dtype", when=other_dtype, dtype=lambda saw, key: str(want(key).dtype)),
            "result == {want}",
        ],
        got=[
            Say("changed_arguments", when=lambda saw, key: saw.changed, arguments=arguments),
            Say("dtype", when=other_dtype, dtype=lambda saw, key: str(saw.result.dtype)),
            lambda saw, key: f"result == {show_sequence(saw.result)}",
        ],
        mistakes={
            "in_place": lambda saw, key: saw.changed,
            "no_return": lambda saw, key: saw.result is None,
            **mistakes,
        },
    )


def equals(
    id: str,
    want: Callable[[Any], Any],
    mistakes: Mapping[str, bool | Of | Gives | Throughout],
    observed: str = "",
    words: str = "",
    **row: Any,
) -> Check:
    """Require an observation, by default that of the same name, to equal `want(key)`, for 1 point.

    The message shows the bare values, or says them in `words`, where they are {value}. `row` holds further fields of the
    check, or others in place of these.
    """
    lines: dict[str, Any] = {
        "expected": Say(words) if words else lambda saw, key: show(want(key)),
        "got": Say(words) if words else lambda saw, key: show(getattr(saw, observed or id)),
    }
    fields: dict[str, Any] = {"points": 1} | lines | row
    return Check(id, observed or id, want, mistakes=mistakes, **fields)


def gives_manager(call: str) -> Check:
    """Require that `call` returns a context manager; observes `manager`, the returned value, and `is_manager`."""
    return Check(
        "is_manager",
        ok=lambda saw, key: saw.is_manager,
        essential=True,
        given=f"manager = {call}",
        expected="manager.__enter__, manager.__exit__",
        got=lambda saw, key: show_kind(saw.manager),
        mistakes={"not_a_manager": True},
    )


def handle_works(call: str, silent: Of) -> Check:
    """Require that `call` returns a handle, and that after its remove() the hook is silent.

    Observes `handle`, the returned value. `silent` tells from the observations whether the hook stayed silent.
    """
    return Check(
        "handle",
        ok=lambda saw, key: saw.handle == HANDLE and silent(saw, key),
        points=1,
        given=f"handle = {call}",
        expected=Say("the_handle"),
        got=[
            Say("stuck_handle", when=lambda saw, key: saw.handle == HANDLE),
            lambda saw, key: show_kind(saw.handle),
        ],
        mistakes={"no_handle": lambda saw, key: saw.handle != HANDLE},
    )


def none_left(given: str, mistake: str, id: str = "left", observed: str = "left") -> Check:
    """Require that the answer removed every hook that it registered; `observed` counts those that remain."""
    return equals(id, lambda key: 0, {mistake: True}, observed, "hooks_left", given=given)


def all_detached(given: str) -> Check:
    """Require that what was kept holds no graph; observes `attached`, the number of tensors that do."""
    return equals("detached", lambda key: 0, {"attached": True}, "attached", "still_attached", given=given)


def must_be(
    id: str,
    value: Any,
    given: Line,
    expected: Line,
    got: Line,
    mistake: str,
    when: bool | Of = True,
    points: int = 1,
) -> Check:
    """Require that the observation with the name of the check is this value, or None: it could not be made.

    The mistake is named `when` a condition holds.
    """
    return Check(
        id,
        ok=lambda saw, key: getattr(saw, id) in (value, None),
        points=points,
        given=given,
        expected=expected,
        got=got,
        mistakes={mistake: when},
    )


def detached(given: str) -> Check:
    """Require that what was kept holds no graph."""
    return must_be("detached", True, given, "requires_grad == False", "requires_grad == True", "attached")
