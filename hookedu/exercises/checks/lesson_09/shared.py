"""Checks and lines shared by the exercises of lesson 09."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Gives, Of
from hookedu.exercises.observation import is_tuple, show
from hookedu.exercises.structures import mapped, same_types
from hookedu.exercises.tools import close, same

Mistakes = Mapping[str, bool | Of | Gives]


def returned(id: str, want: Callable[[Any], Any], points: int, mistakes: Mistakes, **more: Any) -> Check:
    """Require that the answer returns this; observes `result`. `more` are further fields of the check."""
    nothing: Mistakes = {"returns_nothing": lambda saw, key: saw.result is None}
    return Check(id, "result", want, points=points, essential=True, mistakes={**nothing, **mistakes}, **more)


def same_list(found: Any, wanted: Any) -> bool:
    """Check what `same` does, and that a tuple is not taken for a list; in a list it may be."""
    return not is_tuple(found) and same(found, wanted)


def same_with_nan(found: Any, wanted: Any) -> bool:
    """Check what `same_types` does, but a nan equals a nan."""
    return same_types(mapped(_without_nan, found), mapped(_without_nan, wanted))


def _without_nan(value: Any) -> Any:
    """Put another number in place of each nan, which no small convolution gives."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return torch.where(value.isnan(), 2.0**15, value)
    return value


def differs_in_dtype(found: Any, wanted: Any) -> bool:
    """Check whether these are tensors that differ in nothing but their dtype; they may print alike."""
    if (
        not (isinstance(found, torch.Tensor) and isinstance(wanted, torch.Tensor))
        or found.dtype == wanted.dtype
    ):
        return False
    tolerance = 1e-2 if found.element_size() < 4 else 1e-4
    return found.is_floating_point() and close(
        _without_nan(found.to(wanted.dtype)), _without_nan(wanted), tolerance
    )


def show_with_dtype(value: Any, found: Any, wanted: Any) -> str:
    """Return a value as code, with its dtype where that is what makes `found` differ from `wanted`."""
    return f"{show(value)}, {value.dtype}" if differs_in_dtype(found, wanted) else show(value)


def first_wrong(found: Mapping, wanted: Mapping, equal: Callable[[Any, Any], bool]) -> Any:
    """Return the first key with another value than is wanted, or the first of all: all values would fill a page."""
    return next((k for k in wanted if not equal(found.get(k), wanted[k])), next(iter(wanted)))
