"""What the checks of lesson 07 have in common, and exceptions by which mistakes with backward hooks are recognised."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Gives, Of

# Of a hook: a call of the answer itself is named without "<locals>".
THREE_ARGUMENTS = {
    "three_arguments": r"but [345] were given|(<locals>|<lambda>).* missing \d required positional"
}
# Mistakes in hooks that return a new grad_input.
MISRETURNED = {
    "wrong_number": r"invalid number of grad_(in|out)put",
    "wrong_size": r"has changed the size of value",
} | THREE_ARGUMENTS


def as_in_key(id: str, observed: str, points: int, mistakes: Any, **others: Any) -> Check:
    """Require what the key has under the name of the observation."""
    return Check(id, observed, lambda key: getattr(key, observed), points=points, mistakes=mistakes, **others)


def said(observed: str, *parts: str) -> Of:
    """Return the condition that the observation is the text of an exception with one of these parts."""
    return lambda saw, key: isinstance(text := getattr(saw, observed), str) and any(p in text for p in parts)


def reads(*names: str) -> Gives:
    """Return the condition that an answer gives what one of these `readings` of the key gives."""
    return Gives(*(lambda key, name=name: key.readings[name] for name in names))


def all_differ(tensors: Iterable[torch.Tensor]) -> bool:
    """Check whether no two tensors are equal."""
    return not any(torch.equal(*pair) for pair in combinations(tensors, 2))


# Of a check that the model runs under torch.no_grad(), where `ended` is "ok" or what was raised.
NO_GRAD: dict[str, Any] = {
    "mistakes": {"no_grad_crash": said("ended", "cannot register a hook", "'NoneType' object")},
    "given": "with torch.no_grad(): model(x)",
    "expected": "{value}",
    "got": "{value}",
}
