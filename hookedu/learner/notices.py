"""Messages to a learner that are not verdicts, and what becomes of a call that cannot be made."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hookedu.exercises.feedback import panel
from hookedu.language import Text, shown

_P = ParamSpec("_P")
_R = TypeVar("_R")
_WRITE = Text(zh="不能这样调用。要写：{usage}", en="It cannot be called like this. Write {usage}")
_OR = Text(zh=" 或 ", en=" or ")


class Notice:
    """A bilingual message that is not a verdict, displayed in the same kind of panel; with `behind`, to be opened first."""

    def __init__(self, says: Text, title: Text | None = None, behind: Text | None = None):
        self.says, self.title, self._behind = says, title, behind

    def __repr__(self) -> str:
        return "\n".join(str(text) for text in (self.title, self.says) if text)

    def _repr_html_(self) -> str:
        head = f'<div style="font-weight:600">{self.title.inline_html()}</div>' if self.title else ""
        body = self.says.html()
        if self._behind:
            body = f'<details><summary style="cursor:pointer">{self._behind.inline_html()}</summary>{body}</details>'
        return shown(panel("--jp-info-color1, #0277bd", head + body))


def usage(*calls: str) -> Callable[[Callable[_P, _R]], Callable[_P, "_R | Notice"]]:
    """Return a decorator that answers a call with too many, too few or unknown arguments by a notice of how to write it.

    Inside nbgrader, which gives full points for any value that is not a number, such a call raises TypeError as it would
    without.
    """

    def decorate(function: Callable[_P, _R]) -> "Callable[_P, _R | Notice]":
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> "_R | Notice":
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                if os.environ.get("NBGRADER_EXECUTION"):
                    raise
                ways = [f"`{call}`" for call in calls]
                either = Text(zh=_OR.zh.join(ways), en=_OR.en.join(ways))
                return Notice(_WRITE.format(usage=either))
            return function(*args, **kwargs)

        return called

    return decorate
