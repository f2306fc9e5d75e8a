"""What the exercises of lesson 08 share: a process without anybody's global hooks, and a hook of someone else's."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from hookedu.hooks.state import GLOBAL_HOOKS, restored


@contextlib.contextmanager
def without_global_hooks() -> Iterator[None]:
    """Inside, the process has no global hook, whatever the notebook left on; at the end it has them again."""
    with restored():
        for table in GLOBAL_HOOKS.values():
            table.clear()
        yield


class SomeonesHook:
    """A hook that somebody put on in the notebook: it calls `looks` with what it gets, and returns None.

    `list_hooks` names its owner as it would for a learner's own ("user", not "hookedu"), so that an answer which takes
    off all hooks of "user" is seen to take this one, too.
    """

    __module__ = "__main__"

    def __init__(self, looks: Callable[..., Any] = lambda *values: None) -> None:
        self.looks = looks
        self.__name__ = self.__qualname__ = "hook"  # an answer may ask for it, as of any function

    def __call__(self, *values: Any) -> None:
        self.looks(*values)
