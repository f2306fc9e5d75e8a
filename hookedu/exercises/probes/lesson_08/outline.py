"""What is observed of 08.5, `outline(model, x)`: its rows for a model, and what it does with one that raises."""

from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_08.shared import (
    SomeonesHook,
    Watch,
    clear_global_hooks,
    is_on,
    plain,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import linear, module_hooks, whole
from hookedu.hooks.state import GLOBAL_HOOKS


class Model(nn.Module):
    """A model that runs its body and a pool `rounds` times, then the ReLU of the body, then modules in a plain list.

    The pool may return a tuple. The ReLU stands in a Sequential in the body, which is not where it runs the last time (only
    in grad mode), and an empty Sequential, which is false, follows that one. model.modules() omits the modules in the list. These call
    themselves `again` times.
    """

    class Tanh(nn.Tanh):
        """A class inside another, whose __qualname__ is longer than its __name__, and which may call itself.

        It is printed under another name.
        """

        def __repr__(self) -> str:
            return "Squash()"

        def forward(self, input: torch.Tensor, again: int = 0) -> torch.Tensor:
            return self(input=input, again=again - 1) if again else super().forward(input)

    def __init__(
        self,
        weight: torch.Tensor,
        rounds: int,
        n_hidden: int,
        error: type[BaseException] | None = None,
        indices: bool = False,
        again: int = 0,
    ) -> None:
        super().__init__()
        self.body, self.rounds = (
            nn.Sequential(linear(weight), nn.Sequential(nn.ReLU()), nn.Sequential()),
            rounds,
        )
        self.pool = nn.MaxPool1d(1, return_indices=indices)
        self.hidden, self.again = [self.Tanh() for _ in range(n_hidden)], again
        self.error, self.failed = error, False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            x = self.pool(self.body(x))
            x = x[0] if isinstance(x, tuple) else x
        if torch.is_grad_enabled():
            x = self.body.get_submodule("1.0")(x)
        for module in self.hidden:
            x = module(input=x, again=self.again)
        if self.error:
            self.failed = True
            raise self.error
        return x


def make_case(rng: Draw) -> tuple[Model, Model]:
    """Return a model that raises, in turn 1 as an interrupted kernel does, and one that does not.

    In turn 1, a layer of the second is in eval mode, its pool returns a tuple, and its hidden modules call themselves twice.
    """
    rounds, n_hidden = rng.sample(range(2, 6), 2)
    weight, second = whole(rng, 4).abs().reshape(2, 2), rng.turn == 1
    model = Model(weight, rounds, n_hidden, indices=second, again=2 * second)
    model.body[0].train(rng.turn == 0)
    return Model(torch.ones(2, 2), 1, 1, Stopped if rng.turn == 1 else Interruption), model


def _hooks_on(model: Model) -> int:
    """Count the global hooks and the forward hooks of a model, together."""
    everywhere = (len(table) for name, table in GLOBAL_HOOKS.items() if name.endswith("_hooks"))
    return sum(map(module_hooks, (model, *model.hidden))) + sum(everywhere)


def observe(outline: Any, case: tuple[Model, Model]) -> dict[str, Any]:
    """Let it outline the two models; count the hooks that are left after each."""
    (broken, model), x = case, torch.tensor([[1.0, 2.0]])
    clear_global_hooks()
    passed_on, instead = False, None
    try:  # the broken one first: rows and depths that outlive a call then show in the next
        outline(broken, x)
    except (Interruption, Stopped):
        passed_on = True
    except Exception as error:
        if not broken.failed:
            raise
        instead = type(error).__name__
    left_by_error = _hooks_on(broken)
    clear_global_hooks()  # hooks left by the first run must not count in the second
    watch = Watch(model, x)
    theirs = [watch.handle, register_module_forward_pre_hook(SomeonesHook())]
    theirs.append(model.body.register_forward_hook(SomeonesHook()))
    returned: list[Any] = []  # what the model puts out after all global hooks
    theirs.append(model.register_forward_hook(SomeonesHook(lambda _, args, output: returned.append(output))))
    found = plain(outline(model, x))
    watch.handed_on &= all(isinstance(output, torch.Tensor) and watch.knows(output) for output in returned)
    kept = sum(map(is_on, theirs))
    return {
        "found": found,
        "left": _hooks_on(model) - kept,
        "lost": len(theirs) - kept,
        "left_by_error": left_by_error,
        "passed_on": passed_on,
        "instead": instead,
        **watch.seen(),
    }


PROBE = Probe("08.5", "outline", make_case, observe, cases=2, runs=1, restores=True)
