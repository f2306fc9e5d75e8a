"""Structures of tuples, lists and dictionaries, given or observed: what is in them, and copies that differ."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.observation import bracketed, is_tuple, show
from hookedu.exercises.tools import same


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a structure with all that it holds changed, containers after what is in them.

    A container of a subclass is not gone into: it may lie about what it contains.
    """
    kind = type(value)  # compared by identity, as in `encode`
    if kind is dict:
        return change({key: mapped(change, item) for key, item in value.items()})
    if kind is list or is_tuple(value):
        return change(kind(mapped(change, item) for item in value))
    return change(value)


def detached(value: Any) -> Any:
    """Change a tensor into a copy without a graph, for `mapped`."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def untyped(value: Any) -> Any:
    """Change a tuple into a list, for `mapped`."""
    return list(value) if is_tuple(value) else value


def same_types(got: Any, expected: Any, equal: Callable[[Any, Any], bool] = same) -> bool:
    """Check what `equal` does, and that a tuple is a tuple and a list a list."""
    return equal(*(mapped(_told, value) for value in (got, expected)))


def _told(value: Any) -> Any:
    """Change a tuple into what is no list, and no other observation."""
    return {tuple: [*value]} if is_tuple(value) else value


def as_code(value: Any, leaf: Callable[[Any], str] = show) -> str:
    """Return a structure as code, with `leaf` for what is no container."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {as_code(item, leaf)}" for key, item in value.items()) + "}"
    if isinstance(value, list) or is_tuple(value):
        return bracketed((as_code(item, leaf) for item in value), value)
    return leaf(value)
