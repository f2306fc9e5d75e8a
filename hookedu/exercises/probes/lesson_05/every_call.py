"""What is observed of 05.5, `every_call(model, x)`: models that repeat layers, have nested outputs, or fail."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_05.shared import (
    ERRORS,
    Failing,
    count_attached,
    instead_of,
    make_body,
    watch_graph,
)
from hookedu.exercises.probes.onlooker import Onlooker, is_cut
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.structures import detached, mapped, tensors_in
from hookedu.exercises.tools import attempted, copies, linear, whole

# `rounds`: how often the model runs its body, 0 for a model without children; `more`: whether the model has further
# modules, one of them an empty container, and runs its head twice on the same input.
Case = namedtuple("Case", "x weight rounds more")


ROWS = range(2)  # in an output: it can be iterated over, but is no tuple, list or dictionary
MORE = "more"  # a key that a model adds to an output of a layer, and its value


def _modes(model: nn.Module) -> list[bool]:
    """Return `training` of every module."""
    return [module.training for module in model.modules()]


class Single(nn.Module):
    """A model without children: the weight is its own."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.weight = nn.Parameter(case.weight.clone())
        self.weight.grad = torch.ones_like(self.weight)
        self.hooks, self.cut, self.onlooker, self.detached = None, False, Onlooker(self), bool
        self.grad_on = True
        self.switched = False  # noted in the other model, where part of the modules are in evaluation mode

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks, self.grad_on = self.onlooker.others(), torch.is_grad_enabled()
        return x @ self.weight.T


class Recurrent(nn.Module):
    """A model that runs its body `rounds` times, and never runs `spare`."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.body, self.head = make_body(case.weight), linear(case.weight[:1])
        if case.more:
            self.same, self.drop, self.twin = nn.Identity(), nn.Dropout(1.0).eval(), self.body.act
            self.head.register_module("none", None)
            self.empty = nn.ModuleList()
        self.spare = nn.Tanh()
        self.to(case.weight.dtype)
        self.rounds, self.more = case.rounds, case.more
        self.onlooker, self.detached = Onlooker(self), watch_graph(*self.body)
        self.head.bias.requires_grad_(False)
        for parameter in self.parameters():
            parameter.grad = torch.ones_like(parameter)
        self.hooks, self.cut = None, False  # of the answer: hooks in the last run; has one detached an output
        self.modes, self.switched, self.grad_on = _modes(self), False, True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks, trains = self.onlooker.others(), any(p.requires_grad for p in self.parameters())
        self.switched |= _modes(self) != self.modes
        self.grad_on = torch.is_grad_enabled()
        for _ in range(self.rounds):
            step = self.body(x)
            self.cut |= trains and is_cut(step)
            x = x + step
        if self.more:
            x = self.drop(self.same(x))
            self.head(x)
        out = self.head(x)
        self.cut |= trains and is_cut(out)
        return out


class Pair(nn.Module):
    """A layer whose output is a tuple in a tuple, with a dictionary in it."""

    def forward(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, None, dict[str, torch.Tensor]]]:
        return x, (2 * x, None, {"five": 5 * x})


class Named(nn.Module):
    """A layer whose output is a dictionary with a number as a key, and a list of more than tensors with a gradient."""

    def forward(self, x: torch.Tensor) -> dict[Any, Any]:
        return {"logits": x, 7: [3 * x, 3, (), torch.tensor([1, 2]), ROWS]}


class Table(nn.Module):
    """A layer whose output is a tuple of one: its parameter itself, as that of learned positions is."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self) -> tuple[torch.Tensor]:
        return (self.weight,)


class Nothing(nn.Module):
    """A layer that gives nothing, as one that only prints or counts."""

    def forward(self, x: torch.Tensor) -> None:
        pass


class Nested(nn.Module):
    """A model whose layers have nested outputs: of the two steps x and -x, nn.RNN makes a tuple of two tensors.

    In the end it adds to the dictionary that a layer gave.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.rnn, self.pair, self.named = nn.RNN(2, 2, nonlinearity="relu", bias=False), Pair(), Named()
        self.table = Table(case.weight)
        self.to(case.weight.dtype)
        with torch.no_grad():
            for weight in self.rnn.parameters():
                weight.copy_(case.weight)
        self.cut = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, last = self.rnn(x)
        first, (second, _, inside) = self.pair(out)
        named = self.named(first + second)
        (table,) = self.table()
        trains = any(p.requires_grad for p in self.parameters())
        attached = (out, last, first, second, inside["five"], named["logits"], named[7][0], table)
        self.cut |= trains and any(map(is_cut, attached))
        named["more"] = MORE
        return named["logits"]


def has_nested(case: Case) -> bool:
    """Check whether the model with nested outputs runs as well: beside all but the plain model."""
    return case.more or not case.rounds


def steps(case: Case) -> torch.Tensor:
    """Return the input of the model with nested outputs."""
    x = case.x.reshape(2)
    return torch.stack([x, -x])


def make_case(rng: Draw) -> Case:
    """Return a case in which the first call of a layer and the last can be told apart.

    The second model is `Single`; the third has further modules, an input of rank 1 and more rounds, in float64.
    """
    while True:
        x, weight, more = whole(rng, 2), whole(rng, 4).reshape(2, 2), rng.turn == 2
        if more:
            x, weight = x.double(), weight.double()
        rounds = 5 if more else rng.randint(2, 3)
        case = Case(x if more else x.reshape(1, 2), weight, rounds, more)
        for _ in range(rounds - 1):
            x = x + (x @ weight.T).relu()
        if not torch.equal(case.x @ weight.T, (x @ weight.T).reshape(case.x.shape)):
            return case._replace(rounds=0) if rng.turn == 1 else case


def observe(every_call: Any, case: Case) -> dict[str, Any]:
    """Let the answer record a model, with gradients and without, one of nested outputs, one that gives None, and one whose last layer raises."""
    models = [Recurrent(case) if case.rounds else Single(case) for _ in range(3)]
    model, quiet, broken = models
    broken.get_submodule("head" if case.rounds else "").forward = failing = Failing()
    result = every_call(model, case.x)
    saw = {"result": copies(result), "attached": count_attached(result), "grad_on": model.grad_on}
    saw["kinds"] = [type(value).__name__ for value in result.values()] if isinstance(result, dict) else []
    saw["lists"] = isinstance(result, dict) and all(isinstance(value, list) for value in result.values())
    saw |= {"hooks": model.hooks, "root_calls": model.onlooker.root_calls, "left": model.onlooker.others()}
    nested = Nested(case)
    # Not beside the plain model: what keeps something between calls is told so in that case.
    kept = attempted(lambda: every_call(nested, steps(case))) if has_nested(case) else None
    saw["one_dict"] = kept is result
    saw["graph"] = model.grad_on and not model.cut and not nested.cut
    of_none = attempted(lambda: every_call(Nothing(), case.x)) if has_nested(case) else None
    saw["nested"], saw["of_none"] = (
        mapped(detached, dict(found) if isinstance(found, dict) else found) for found in (kept, of_none)
    )
    saw["nested_attached"] = sum(tensor.requires_grad for tensor in tensors_in(kept))
    saw |= {"detached": model.detached(), "switched": model.switched and _modes(model) == model.modes}
    with torch.no_grad():
        saw["no_grad"] = copies(every_call(quiet, case.x)) if has_nested(case) else saw["result"]
    saw |= {"raised": "", "instead": "", "left_by_error": 0}
    for kind in ERRORS:
        failing.error, before = kind, broken.onlooker.others()
        instead: str | None = ""
        try:
            every_call(broken, case.x)
        except Exception as error:
            instead = instead_of(failing, error)
        saw["left_by_error"] = max(saw["left_by_error"], broken.onlooker.others() - before)
        if instead is not None and not saw["raised"]:
            saw |= {"raised": kind.__name__, "instead": instead}
    return saw | {"lost": sum(m.onlooker.lost() for m in models)}


PROBE = Probe("05.5", "every_call", make_case, observe, cases=3, runs=1, restores=True)
