"""What is observed of 05.5, `every_call(model, x)`: a model that runs its layers repeatedly, and one that fails."""

import random
from collections import namedtuple
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_05.shared import count_attached, make_body, out_of_memory
from hookedu.exercises.probes.onlooker import Onlooker, is_cut
from hookedu.exercises.probing import Interruption, Probe
from hookedu.exercises.tools import copies, linear, whole

# `rounds`: how often the model runs its body.
Case = namedtuple("Case", "x weight rounds")


class Recurrent(nn.Module):
    """A model that runs its body `rounds` times, and never runs `spare`."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.body, self.head, self.spare = make_body(case.weight), linear(case.weight[:1]), nn.Tanh()
        self.rounds, self.onlooker = case.rounds, Onlooker(self)
        self.hooks, self.cut = None, False  # of the answer: hooks in the last run; has one detached an output

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks = self.onlooker.others()
        for _ in range(self.rounds):
            step = self.body(x)
            self.cut |= is_cut(step)
            x = x + step
        out = self.head(x)
        self.cut |= is_cut(out)
        return out


def make_case(rng: random.Random) -> Case:
    """Return a case in which the first call of a layer and the last can be told apart."""
    while True:
        case = Case(whole(rng, 2).reshape(1, 2), whole(rng, 4).reshape(2, 2), rng.randint(2, 3))
        x, weight, rounds = case
        for _ in range(rounds - 1):
            x = x + (x @ weight.T).relu()
        if not torch.equal(case.x @ weight.T, x @ weight.T):
            return case


def observe(every_call: Any, case: Case) -> dict[str, Any]:
    """Let the answer record a model, and one whose last layer is broken."""
    model, broken = Recurrent(case), Recurrent(case)
    broken.get_submodule("head").forward = out_of_memory
    result = every_call(model, case.x)
    saw = {"result": copies(result), "attached": count_attached(result), "graph": not model.cut}
    saw |= {"hooks": model.hooks, "root_calls": model.onlooker.root_calls, "left": model.onlooker.others()}
    saw["training"] = all(module.training for module in model.modules())
    with suppress(Interruption):
        every_call(broken, case.x)
    saw["left_by_error"] = broken.onlooker.others()
    return saw | {"lost": model.onlooker.lost() + broken.onlooker.lost()}


PROBE = Probe("05.5", "every_call", make_case, observe)
