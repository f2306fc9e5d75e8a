"""Checks and lines shared by the exercises of lesson 09."""

from collections.abc import Callable, Mapping
from typing import Any

from hookedu.exercises.criteria import Check, Gives, Of
from hookedu.exercises.tools import same

Mistakes = Mapping[str, bool | Of | Gives]


def returned(id: str, want: Callable[[Any], Any], points: int, mistakes: Mistakes, **more: Any) -> Check:
    """Require that the answer returns this; observes `result`. `more` are further fields of the check."""
    nothing: Mistakes = {"returns_nothing": lambda saw, key: saw.result is None}
    return Check(id, "result", want, points=points, essential=True, mistakes={**nothing, **mistakes}, **more)


def first_wrong(found: Mapping, wanted: Mapping, equal: Callable[[Any, Any], bool] = same) -> Any:
    """Return the first key with another value than is wanted, or the first of all: all values would fill a page."""
    return next((k for k in wanted if not equal(found.get(k), wanted[k])), next(iter(wanted)))
