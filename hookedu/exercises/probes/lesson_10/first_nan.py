"""What is observed of 10.3, `first_nan(model, x)`: its results on healthy and ill models."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.chain import Chain, lived_in
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import whole

Function = Callable[[torch.Tensor], torch.Tensor]

# Per turn, what is tried besides a healthy and an ill model: a nan in the input of either, a flooded model, and a layer
# that is the model, also with a nan in another row than the one in which it makes some, and the ill model of turn 0 with a
# body that overwrites the output in which the nan was. The first turn is observed several times, so it is short.
TRIALS = ((), ("flooded", "both"), ("flooded", "input", "bare", "other_row", "reused"))
NOT_TRIED = "not tried"


class Layer(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.forward = function


class Body(Chain):
    """A chain that computes something itself after its children have run, and then may overwrite their output."""

    def __init__(
        self, children: dict[str, nn.Module], run: Sequence[str], after: Function, reuses: bool
    ) -> None:
        super().__init__(children, run)
        self.after, self.reuses = after, reuses

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = super().forward(x)
        out = self.after(inside)
        if self.reuses:
            inside.zero_()
        return out


class Case(NamedTuple):
    """Turn; names of the three modules in the body; the input; divisors; an input with a nan."""

    turn: int
    inner: Sequence[str]
    x: torch.Tensor
    by: torch.Tensor
    spoilt: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case in which the first two quotients x / by have different signs; the nan is in the last row."""
    names = ("centre", "shift", "norm", "mix", "gate")
    rows = 1 + (rng.turn != 1)
    inner, x, by = rng.sample(names, 3), whole(rng, 3 * rows).reshape(rows, 3), whole(rng, 3).abs()
    x[:, 0], x[:, 1] = x[:, 0].abs(), -x[:, 1].abs()
    spoilt = x.clone()
    spoilt[-1, 1] = torch.nan
    return Case(rng.turn, inner, x, by, spoilt)


def make_model(case: Case, ill: bool = False, flooded: bool = False, reuses: bool = False) -> Chain:
    """Build the model, which produces nan where it is `ill`, and nothing but nan where it is also `flooded`.

    A division by 0 then makes inf and -inf of clean numbers, and a module makes nan of those, in the last row. `clean`,
    `wipe` and `rinse` remove it, and `again`, `stem` in its second run, `anew` and `more` compute 0 / 0 and produce nan
    once more.

    - Turn 0: `scale` divides, and the second of three modules in the body makes nan.
    - Turn 1: the first in the body divides, and the second makes nan, runs before it as well and once more, and lies one
      level deeper.
    - Turn 2: the code of the body itself makes nan, none of its modules; `relay` passes it on.
    """
    turn, (first, middle, last) = case.turn, case.inner
    zero = torch.where(torch.arange(3) < (3 if flooded else 2), 0.0, case.by) if ill else case.by

    def subtract(x: torch.Tensor) -> torch.Tensor:
        if flooded:
            return x * torch.nan
        return torch.cat([x[:-1], x[-1:] - 2 * x[-1:, :1]])

    cure = torch.zeros_like if ill else torch.nan_to_num
    middle_layer: nn.Module = Layer(subtract if turn != 2 else torch.abs)
    if turn == 1:
        middle_layer = nn.Sequential(nn.Identity(), middle_layer)
    body: dict[str, nn.Module] = {
        last: nn.Identity(),
        middle: middle_layer,
        first: Layer(lambda x: x / zero) if turn == 1 else nn.Identity(),
    }
    run = (middle, first, middle, last, middle) if turn == 1 else case.inner
    children = {
        "tail": nn.Identity(),
        "anew": Layer(lambda x: x / zero),
        "again": Layer(lambda x: x / zero),
        "body": Body(body, run, subtract if turn == 2 else torch.clone, reuses),
        "more": Layer(lambda x: x / zero),
        "relay": nn.Identity(),
        "clean": Layer(cure),
        "wipe": Layer(cure),
        "scale": Layer((lambda x: x * 2) if turn == 1 else (lambda x: x / zero)),
        "stem": Layer(lambda x: (x * x.abs() + zero) / (x.abs() + zero)),
        "rinse": Layer(cure),
        "spare": nn.LayerNorm(case.x.shape[-1]),
    }
    run = ("stem", "scale", "body", "relay", "clean", "again", "wipe")
    run += ("stem", "wipe", "anew", "rinse", "more", "tail")
    # In turn 2 it is in eval mode.
    return lived_in(Chain(children, run), frozen="spare.weight", still="clean", trained=turn != 2)


def observe(first_nan: Any, case: Case) -> dict[str, Any]:
    """Call it on a healthy model, on an ill one, and as the `TRIALS` of this turn say."""
    healthy = make_model(case)

    bare = {
        "bare": Layer(lambda x: (x - x[:1]) / (x - x[:1])),
        "other_row": Layer(lambda x: (x - x[-1:]) / (x - x[-1:])),
    }

    def trial(name: str, x: torch.Tensor, **kind: bool) -> Any:
        model = bare.get(name) or make_model(case._replace(turn=0) if name == "reused" else case, **kind)
        return first_nan(model, x.clone()) if name in TRIALS[case.turn] else NOT_TRIED

    spoilt_first = case.x.clone()
    spoilt_first[0, 0] = torch.nan
    return {
        "healthy": first_nan(healthy, case.x.clone()),
        "out": healthy.out,
        "training": healthy.ran_in_training == healthy.was_training,
        "finds": first_nan(make_model(case, ill=True), case.x.clone()),
        "input": trial("input", case.spoilt),
        "flooded": trial("flooded", case.x, ill=True, flooded=True),
        "both": trial("both", case.spoilt, ill=True),
        "reused": trial("reused", case.x, ill=True, reuses=True),
        "bare": trial("bare", case.x),
        "other_row": trial("other_row", spoilt_first),
    }


PROBE = Probe("10.3", "first_nan", make_case, observe, cases=len(TRIALS), runs=1, restores=True)
