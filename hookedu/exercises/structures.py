"""Structures of tuples, lists and dictionaries in observations, which tell a tuple from a list.

`described` makes a list of either, with the name of its type as the first item, because what has been encoded knows
lists only.
"""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.observation import show

TUPLE, LIST = "tuple", "list"  # the first item of one that was described


def _same(value: Any) -> Any:
    return value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in tuples, lists and dictionaries, described or not."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def described(value: Any, other: Callable[[Any], Any] = _same) -> Any:
    """Return a copy of a structure for an observation; `other` maps what is neither a container nor a tensor."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value) in (tuple, list):
        return [type(value).__name__, *(described(item, other) for item in value)]
    if type(value) is dict:
        return {key: described(item, other) for key, item in value.items()}
    return other(value)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a described structure with all that it holds changed, containers after what is in them."""
    if isinstance(value, dict):
        value = {key: mapped(change, item) for key, item in value.items()}
    elif isinstance(value, list):
        value = [mapped(change, item) for item in value]
    return change(value)


def untyped(value: Any) -> Any:
    """Change a tuple into a list, for `mapped`."""
    return LIST if isinstance(value, str) and value == TUPLE else value


def as_code(value: Any, leaf: Callable[[Any], str] = show) -> str:
    """Return a described structure as code, with `leaf` for what is no container."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {as_code(item, leaf)}" for key, item in value.items()) + "}"
    if isinstance(value, list) and value and isinstance(value[0], str) and value[0] in (TUPLE, LIST):
        inside = ", ".join(as_code(item, leaf) for item in value[1:])
        return f"[{inside}]" if value[0] == LIST else f"({inside}{',' * (len(value) == 2)})"
    return leaf(value)
