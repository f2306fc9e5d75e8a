"""What the exercises of lesson 04 share: parameters as plain values, and mistakes that fit several."""

from typing import Any

import torch

from hookedu.exercises.model import Criterion, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.tools import close, copies
from hookedu.language import Text


def parameters(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of every parameter, by name."""
    return copies(dict(model.named_parameters()))


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """A copy of every parameter's .grad, by name."""
    return {name: copies(parameter.grad) for name, parameter in model.named_parameters()}


def all_close(got: Any, expected: dict[str, torch.Tensor | None]) -> bool:
    """The same names, and for each the same tensor but for rounding, or None in both."""
    return (
        isinstance(got, dict)
        and got.keys() == expected.keys()
        and all(close(got[k], v) if v is not None else got[k] is None for k, v in expected.items())
    )


def remove_handles(handles: Any) -> None:
    """Call remove() on one handle or on each in a list; anything else is left alone."""
    for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
        remove_handle(handle)


def handles_given(handles: Any, off: bool, call: str) -> Criterion:
    """The answer returned a list of handles, and with them everything came off."""
    given_back = isinstance(handles, list) and len(handles) > 0
    return Criterion(
        *("handles", given_back and off, 1),
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
FROZEN = Mistake(
    "hooks_frozen",
    Text(
        zh="有一个参数被冻结了（`requires_grad` 是 `False`），它没有梯度，也不接受钩子。遇到这样的就跳过。",
        en="One parameter is frozen (its `requires_grad` is `False`): it gets no gradient and takes no hook. Skip such ones.",
    ),
    raises=r"cannot register a hook on a tensor that doesn't require gradient",
)
