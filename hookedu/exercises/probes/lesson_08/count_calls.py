"""What is observed of 08.5, `count_calls(model, x)`: calls with a model that raises and one that does not."""

import random
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu.exercises.probes.lesson_08.shared import SomeonesHook, clear_global_hooks, is_on
from hookedu.exercises.probing import Interruption, Probe
from hookedu.exercises.tools import linear, module_hooks, whole
from hookedu.hooks.state import GLOBAL_HOOKS


class Model(nn.Module):
    """A model that runs its body `rounds` times, then modules in a plain list, which model.modules() omits."""

    def __init__(self, weight: torch.Tensor, rounds: int, n_hidden: int, broken: bool = False) -> None:
        super().__init__()
        self.body, self.rounds = nn.Sequential(linear(weight), nn.ReLU()), rounds
        self.hidden, self.broken = [nn.Tanh() for _ in range(n_hidden)], broken

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            x = self.body(x)
        for module in self.hidden:
            x = module(x)
        if self.broken:
            raise Interruption
        return x


def make_case(rng: random.Random) -> Model:
    """Return a model whose two numbers differ."""
    rounds, n_hidden = rng.sample(range(2, 12), 2)
    return Model(whole(rng, 4).reshape(2, 2), rounds, n_hidden)


def _hooks_on(model: nn.Module) -> int:
    """Count the global hooks and the forward hooks of a model, together."""
    everywhere = (len(table) for name, table in GLOBAL_HOOKS.items() if name.endswith("_hooks"))
    return module_hooks(model) + sum(everywhere)


def observe(count_calls: Any, model: Model) -> dict[str, Any]:
    """Count the calls of two models; count the hooks that are left after each."""
    broken, x = Model(torch.ones(2, 2), rounds=1, n_hidden=1, broken=True), torch.ones(1, 2)
    clear_global_hooks()
    passed_on = False
    try:  # the broken one first: counts that outlive a call then show in the next
        count_calls(broken, x)
    except Interruption:
        passed_on = True
    left_by_error = _hooks_on(broken)
    clear_global_hooks()  # hooks left by the first run must not count in the second
    theirs = [register_module_forward_pre_hook(SomeonesHook()), register_module_forward_hook(SomeonesHook())]
    found = count_calls(model, x)
    kept = sum(map(is_on, theirs))
    return {
        # Of a Counter, which is a dict too, `encode` would keep only the type.
        "found": dict(found) if isinstance(found, dict) else found,
        "left": _hooks_on(model) - kept,
        "lost": len(theirs) - kept,
        "left_by_error": left_by_error,
        "passed_on": passed_on,
    }


PROBE = Probe("08.5", "count_calls", make_case, observe)
