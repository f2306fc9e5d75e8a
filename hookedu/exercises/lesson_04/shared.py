"""Helpers, a criterion and a mistake shared by the exercises of lesson 04."""

from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.tools import copies
from hookedu.language import Text


def parameters(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of every parameter, by name."""
    return copies(dict(model.named_parameters()))


def remove_handles(handles: Any) -> None:
    """Remove one handle or every handle in a list or tuple; ignore anything else."""
    for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
        remove_handle(handle)


def handles_given(handles: Any, off: bool, call: str) -> Criterion:
    """Require a non-empty list of handles; `off` says whether removing them undid everything."""
    given_back = isinstance(handles, list) and len(handles) > 0
    return Criterion(
        "handles",
        given_back and off,
        points=1,
        given=call,
        expected=Text(
            zh="句柄的列表；`remove()` 之后一切如初",
            en="a list of handles; after `remove()` all is as before",
        ),
        got=show(handles).replace("<", "").replace(">", ""),
        mistake="no_handles",
    )


NO_HANDLES = Mistake(
    "no_handles",
    Text(
        zh="要返回一个列表，装着每一次注册得到的句柄。少了任何一个，那个钩子就再也取不下来。",
        en="Return a list that holds the handle of every registration. Without one of them, that hook stays on for good.",
    ),
    fails="handles",
)
