"""What the exercises of lesson 08 share: a process without anybody's global hooks."""

import contextlib
from collections.abc import Iterator

from hookedu.state import GLOBAL_HOOKS, restored


@contextlib.contextmanager
def without_global_hooks() -> Iterator[None]:
    """Inside, the process has no global hook, whatever the notebook left on; at the end it has them again."""
    with restored():
        for table in GLOBAL_HOOKS.values():
            table.clear()
        yield
