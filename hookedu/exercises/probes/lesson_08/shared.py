"""A hook of someone else's, whether hooks are on, and containers as plain values, for the probes of lesson 08."""

from collections.abc import Callable
from typing import Any

from torch.utils.hooks import RemovableHandle

from hookedu.hooks.state import GLOBAL_HOOKS


class SomeonesHook:
    """A hook that someone else registers in the notebook; it calls `looks` with its arguments and returns None.

    `list_hooks` reports its owner as that of a learner's own hook ("user", not "hookedu"): an answer that removes all
    hooks of "user" removes this one, too, and that is observed.
    """

    __module__ = "__main__"

    def __init__(self, looks: Callable[..., Any] = lambda *values: None) -> None:
        self.looks = looks
        self.__name__ = self.__qualname__ = "hook"  # an answer may read it, as of any function

    def __call__(self, *values: Any) -> None:
        self.looks(*values)


def is_on(handle: Any) -> bool:
    """Check whether a value is a handle whose hook is still registered."""
    return isinstance(handle, RemovableHandle) and handle.id in (handle.hooks_dict_ref() or ())


def clear_global_hooks() -> None:
    """Remove all global hooks, whatever the notebook has left on; `probing.observe` restores them."""
    for table in GLOBAL_HOOKS.values():
        table.clear()


def plain(value: Any, levels: int = 2) -> Any:
    """Return dicts, lists and tuples as the built-in types: of any subclass, `encode` would keep only the type."""
    if isinstance(value, dict) and levels:
        return {key: plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and levels:
        return [plain(item, levels - 1) for item in value]
    return value
