"""What is observed of 15.3, `nan_source(model, x)`: its results on ill models, a healthy one, and for a spoilt input."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.chain import Chain, lived_in, plain
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import whole

Function = Callable[[torch.Tensor], torch.Tensor]
_WORDS: tuple[str, ...] = ("centre", "shift", "norm", "mix", "gate", "lift", "tap")
LARGE = 2.0**127  # finite, but the sum of two is not


class Layer(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.forward = function


class Case(NamedTuple):
    """Turn; names of the children, in the order of running; name inside of the third; the input; the ill samples; a place.

    The place is where the input is spoilt: in turn 0 the first sample, else another.
    """

    turn: int
    names: list[str]
    inner: str
    x: torch.Tensor
    ill: list[int]
    spoilt: int


def make_case(rng: Draw) -> Case:
    """Return a case of five samples of shape (3, 2), or of three numbers each in turn 2; one or two samples are ill.

    None of these has the number of how many there are.
    """
    (*names, inner), turn = rng.sample(_WORDS, 7), rng.turn
    ill: list[int] = sorted(rng.sample((1, 3, 4), 2)) if turn else [rng.choice((2, 3, 4))]
    x = torch.stack([whole(rng, 6).reshape(3, 2) if turn != 2 else whole(rng, 3) for _ in range(5)])
    return Case(turn, names, inner, x, ill, 0 if turn == 0 else rng.randrange(1, 5))


def _spoils(value: float, ill: list[int]) -> Function:
    """Return a function that puts a value into the second number of some samples."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        for sample in ill:
            x[sample].view(-1)[1] = value
        return x

    return function


_seconds: tuple[Function, ...] = (
    lambda x: x * 2,
    lambda x: torch.nan_to_num(x * 2),
    lambda x: torch.full_like(x, LARGE),
)


def _fourth(x: torch.Tensor) -> torch.Tensor:
    """Return nan for what is not finite, and replace that by numbers in place."""
    result = x - x
    x.nan_to_num_()
    return result


def make_model(case: Case, ill: bool = True) -> Chain:
    """Build the model, which puts out numbers that are not finite where it is `ill`.

    - The first layer passes its input on, but in turn 2 it replaces nan by 0.
    - The second, which runs again later, is harmless; in turn 1 it replaces nan by 0, so that only the first layer passes on
      that of a spoilt input; in turn 2 it puts out numbers that are finite, but large.
    - The third holds another layer, at fault; it and the fourth run again at the end; in turn 0 it makes -inf, in turn 1 nan, in turn 2 inf.
    - The fourth makes nan of that, and in turn 1 replaces it by 0 in place; the fifth spreads it to all samples, as a batch
      normalisation does.
    - The last makes all of it 0 again.
    """
    first, second, third, fourth, fifth, last = case.names
    value = (-torch.inf, torch.nan, torch.inf)[case.turn] if ill else 1.0
    children: dict[str, nn.Module] = {
        last: Layer(torch.zeros_like),
        fifth: Layer((lambda x: x + x.sum(0)) if ill else torch.abs),
        fourth: Layer((_fourth if case.turn == 1 else lambda x: x - x) if ill else lambda x: x),
        third: nn.Sequential(),
        second: Layer(_seconds[case.turn]),
        first: Layer(torch.nan_to_num) if case.turn == 2 else nn.Identity(),
        "spare": nn.LayerNorm(case.x.shape[-1]),
    }
    children[third].add_module(case.inner, Layer(_spoils(value, case.ill)))
    run = (first, second, third, fourth, fifth, last, second, third, fourth)
    return lived_in(Chain(children, run), frozen="spare.weight", still=first)


def observe(nan_source: Any, case: Case) -> dict[str, Any]:
    """Call it on a healthy model, on an ill one, and on a healthy one with a spoilt input."""
    healthy, ill, spoilt = make_model(case, ill=False), make_model(case), case.x.clone()
    spoilt[case.spoilt].view(-1)[0] = torch.nan
    return {
        "healthy": plain(nan_source(healthy, case.x.clone())),
        "out": healthy.out,
        "training": healthy.ran_in_training,
        "finds": plain(nan_source(ill, case.x.clone())),
        "ill_out": ill.out,  # None if the answer stops the run when it has found what it looks for
        "input": plain(nan_source(make_model(case, ill=False), spoilt)),
    }


PROBE = Probe("15.3", "nan_source", make_case, observe, cases=3, runs=1, restores=True)
