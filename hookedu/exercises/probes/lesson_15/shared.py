"""What the probes of this lesson share: a model with a branch, managers that end early, and entries as plain values."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.observation import alike, encode
from hookedu.exercises.probes.chain import hooks_of_modules, parameter_hooks
from hookedu.exercises.tools import is_manager, rebuilt
from hookedu.hooks.state import GLOBAL_HOOKS, GLOBAL_STEP_HOOKS


class Names(NamedTuple):
    """Names of the children of a `Net`, in the order of running; `inner` and `gate` are inside of `body`."""

    stem: str
    act: str
    side: str
    body: str
    inner: str
    gate: str
    head: str
    spare: str

    @property
    def run(self) -> list[str]:
        """Paths of the modules without children, in the order of running; the spare one never runs."""
        body = [f"{self.body}.{name}" for name in (self.inner, self.gate)]
        return [self.stem, self.act, self.side, *body, self.head]


class Net(nn.Module):
    """A model whose children are defined in another order than they run, and one of which never does.

    A ReLU behind the stem works in place. The side branch runs in training mode only. Where the side branch is `cut`, no gradient enters it.
    """

    def __init__(self, names: Names, layers: dict[str, nn.Module], cut: bool = False) -> None:
        super().__init__()
        self._names, self._cut = names, cut
        for name in (names.head, names.spare, names.act, names.side, names.body, names.stem):
            self.add_module(name, layers[name])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = self._names
        x = self.get_submodule(names.act)(self.get_submodule(names.stem)(x))
        side = self.get_submodule(names.side)(x) if self.training else torch.zeros(())
        x = self.get_submodule(names.body)(x) + (side.detach() if self._cut else side)
        return self.get_submodule(names.head)(x)


def hooks_left(model: nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Count the hooks on modules, parameters and an optimizer, and the global ones."""
    count = sum(map(len, (*GLOBAL_HOOKS.values(), *GLOBAL_STEP_HOOKS.values())))
    if model is not None:
        count += hooks_of_modules(model) + parameter_hooks(model.parameters())
    if optimizer is not None:
        count += sum(len(table) for name, table in vars(optimizer).items() if name.endswith("_hooks"))
        step = optimizer.step  # an answer may have put another function in its place
        count += getattr(step, "__func__", step) is not type(optimizer).step
    return count


def raised(make: Callable[[], Any], count: Callable[[], int]) -> list[str]:
    """Raise exceptions in the block of a manager; return for each what became of it and of the hooks."""
    found = []
    for error in (Interruption, Stopped):
        before = count()
        try:
            with make():
                raise error("out of memory")
            found.append("swallowed")
        except error:
            found.append("came through" if count() == before else "left on")
    return found


def grad_modes(make: Callable[[], Any]) -> list[bool]:
    """Return whether gradients are enabled in the block of a manager: entered with them on, then with them off."""
    found = []
    for on in (True, False):
        with torch.set_grad_enabled(on), make():
            found.append(torch.is_grad_enabled())
    return found


def as_before(value: Any, snapshot: Any) -> bool:
    """Check whether the entries that a manager gave are still those of an earlier snapshot."""
    return alike(encode(entries(value)), encode(snapshot))


def entered(manager: Any) -> tuple[bool, Any]:
    """Return whether this is a context manager, and what it gives on entering."""
    return (True, manager.__enter__()) if is_manager(manager) else (False, None)


def entries(value: Any) -> Any:
    """Return the entries kept so far as plain lists and tuples, in order, a dict as a list of pairs: a snapshot, as the answer goes on."""
    if isinstance(value, dict):
        return [[str(key), entries(item)] for key, item in value.items()]
    if isinstance(value, list | tuple):
        return rebuilt(value, map(entries, value))
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return float(value) if isinstance(value, float) else value
