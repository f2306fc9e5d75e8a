"""Hooks of someone else's, whether hooks are on, and containers as plain values, for the probes of lesson 08."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle

from hookedu.exercises.tools import rebuilt
from hookedu.hooks.state import GLOBAL_HOOKS


class SomeonesHook:
    """A hook that someone else registers in the notebook; it calls `looks` with its arguments and returns what that does.

    `list_hooks` reports its owner as that of a learner's own hook ("user", not "hookedu"): an answer that removes all
    hooks of "user" removes this one, too, and that is observed.
    """

    __module__ = "__main__"

    def __init__(self, looks: Callable[..., Any] = lambda *values: None) -> None:
        self.looks = looks
        self.__name__ = self.__qualname__ = "hook"  # an answer may read it, as of any function

    def __call__(self, *values: Any) -> Any:
        return self.looks(*values)


class Watch:
    """A global hook of someone else's: what a model is called with, and whether each output is handed on as it was.

    It must be registered before the hooks of an answer, so that it sees each output before they can replace it.
    """

    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.model, self.x = model, x.clone()
        self.made = [_snapshot(x)]
        self.called: list[bool] = []  # for each call of the model: with x
        self.copies, self.handed_on = 0, True
        self.handle = register_module_forward_hook(SomeonesHook(self._note))

    def _note(self, module: nn.Module, args: tuple[torch.Tensor, ...], output: Any) -> None:
        self.handed_on &= all(map(self.knows, args))
        if module is self.model:
            self.called.append(all(torch.equal(value, self.x) for value in args))
            self.handed_on &= self.knows(output)
        else:
            self.copies += type(module) is type(self.model)
        self.made += map(_snapshot, output if isinstance(output, tuple) else (output,))

    def knows(self, value: torch.Tensor) -> bool:
        """Check whether a tensor is one that has been handed out, as it was then."""
        values, needs_grad = _snapshot(value)
        return not value.retains_grad and any(
            needs_grad == needed and torch.equal(values, made) for made, needed in reversed(self.made)
        )

    def seen(self) -> dict[str, Any]:
        """Return the observations: how the model and copies of it were called, whether each output was handed on."""
        return {"called": self.called, "copies": self.copies, "handed_on": self.handed_on}


def _snapshot(value: torch.Tensor) -> tuple[torch.Tensor, bool]:
    return value.detach().flatten().clone(), value.requires_grad


def is_on(handle: Any) -> bool:
    """Check whether a value is a handle whose hook is still registered."""
    if not isinstance(handle, RemovableHandle):
        return False
    table = getattr(handle, "hooks_dict_ref", lambda: None)()  # that of several hooks has none
    return table is not None and handle.id in table


def clear_global_hooks() -> None:
    """Remove all global hooks, whatever the notebook has left on; `probing.observe` restores them."""
    for table in GLOBAL_HOOKS.values():
        table.clear()


def plain(value: Any, levels: int = 2) -> Any:
    """Return dicts, lists and tuples as the built-in types: of any subclass, `encode` would keep only the type."""
    if isinstance(value, dict) and levels:
        return {key: plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and levels:
        return rebuilt(value, (plain(item, levels - 1) for item in value))
    return value
