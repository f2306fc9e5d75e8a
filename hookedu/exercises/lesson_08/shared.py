"""A context without global hooks and a hook of someone else's, shared by exercises of lesson 08."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from hookedu.hooks.state import GLOBAL_HOOKS, restored


@contextlib.contextmanager
def without_global_hooks() -> Iterator[None]:
    """Remove all global hooks, whatever the notebook has left on, and restore them at the end."""
    with restored():
        for table in GLOBAL_HOOKS.values():
            table.clear()
        yield


class SomeonesHook:
    """A hook that someone else registers in the notebook; it calls `looks` with its arguments and returns None.

    `list_hooks` reports its owner as that of a learner's own hook ("user", not "hookedu"): an answer that removes all
    hooks of "user" removes this one, too, and the judge sees it.
    """

    __module__ = "__main__"

    def __init__(self, looks: Callable[..., Any] = lambda *values: None) -> None:
        self.looks = looks
        self.__name__ = self.__qualname__ = "hook"  # an answer may read it, as of any function

    def __call__(self, *values: Any) -> None:
        self.looks(*values)
