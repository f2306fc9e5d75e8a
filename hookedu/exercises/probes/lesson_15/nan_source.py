"""What is observed of 15.3, `nan_source(model, x)`: its results on ill models, a healthy one, and for a spoilt input."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.chain import Chain, lived_in, plain
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import whole

Function = Callable[[torch.Tensor], torch.Tensor]
_WORDS: tuple[str, ...] = ("centre", "shift", "norm", "mix", "gate", "lift", "tap")
LARGE = 2.0**1023  # finite in float64, but the sum of two is not, nor is it in float32


class Layer(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.forward = function


class Spoiler(nn.Module):
    """Puts a value that is not finite into some samples: into one number of the first, and nan into one more of each further one."""

    def __init__(self, value: float, ill: list[int]) -> None:
        super().__init__()
        self.value, self.ill = value, ill

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone(memory_format=torch.contiguous_format)
        for n, sample in enumerate(sample for sample in self.ill if sample < len(x)):
            x[sample].view(-1)[1 : 2 + n] = torch.nan if n and not math.isfinite(self.value) else self.value
        return x


class Muddle(nn.Module):
    """A container that makes nan by itself, of the finite numbers that its layers put out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.children():
            x = layer(x)
        x = x.clone()
        x[..., 0] = torch.nan
        return x


class Case(NamedTuple):
    """Turn; names of the children, in the order of running; name inside of the third; the input; the ill samples; a place.

    The place is where the input is spoilt: in turn 0 the first sample, which is then the only one, else another.
    """

    turn: int
    names: list[str]
    inner: str
    x: torch.Tensor
    ill: list[int]
    spoilt: int


def make_case(rng: Draw) -> Case:
    """Return a case of five samples; one or two are ill.

    They are of shape (1, 3, 2), of (2, 3) not contiguous, and in turn 2 of three float64 numbers.

    None of those that are ill has the number of how many there are.
    """
    (*names, inner), turn = rng.sample(_WORDS, 7), rng.turn
    ill: list[int] = sorted(rng.sample((1, 3, 4), 2)) if turn else [rng.choice((2, 3, 4))]
    x = torch.stack([whole(rng, 6).reshape(3, 2) if turn != 2 else whole(rng, 3).double() for _ in range(5)])
    if turn == 0:
        x = x.unsqueeze(1)
    elif turn == 1:
        x = x.transpose(1, 2)
    return Case(turn, names, inner, x, ill, 0 if turn == 0 else rng.randrange(1, 5))


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


def order(case: Case) -> list[str]:
    """Return the names of the children in the order of running."""
    first, second, third, fourth, fifth, last = case.names
    if case.turn == 0:
        return [first, second, third, fourth, fifth, second, last, third, fourth]
    run = [first, second, third, fourth, fifth, last, second, third, fourth]
    return [*run, last] if case.turn == 2 else run


def make_model(case: Case, ill: bool = True) -> Chain:
    """Build the model, which puts out numbers that are not finite where it is `ill`.

    - The first layer passes its input on, but in turn 2 it replaces nan by 0.
    - The second, which runs again later, is harmless, but in turn 0 bad by then; in turn 1 it replaces nan by 0, so that only
      the first layer passes on that of a spoilt input; in turn 2 it puts out numbers that are finite, but large.
    - The third holds another layer, at fault; it and the fourth run again at the end; in turn 0 it makes -inf, in turn 1 nan, in turn 2 inf, and nan in a later sample.
      In a healthy model it is the container itself that makes nan.
    - The fourth makes nan of that, and in turn 1 replaces it by 0 in place; in a healthy model it replaces nan by 0. The fifth
      spreads nan to all samples, as a batch normalisation does.
    - The last makes all of it 0 again; in turn 2 it runs at the end as well, so that the result is finite. There the model is
      in evaluation mode.
    """
    first, second, third, fourth, fifth, last = case.names
    value = (-torch.inf, torch.nan, torch.inf)[case.turn] if ill else 1.0
    children: dict[str, Any] = {
        last: Layer(torch.zeros_like),
        fifth: Layer((lambda x: x + x.sum(0)) if ill else torch.abs),
        fourth: Layer((_fourth if case.turn == 1 else lambda x: x - x) if ill else torch.nan_to_num),
        third: nn.Sequential() if ill else Muddle(),
        second: Layer(_seconds[case.turn]),
        first: Layer(torch.nan_to_num) if case.turn == 2 else nn.Identity(),
        "spare": nn.LayerNorm(case.x.shape[-1]),
    }
    children["spare"].weight.data[0] = torch.nan  # no layer puts it out, and it stays as it is
    children[third].add_module(case.inner, Spoiler(value, case.ill))
    model = lived_in(Chain(children, order(case)), frozen="spare.weight", still=first)
    return model.eval() if case.turn == 2 else model


def observe(nan_source: Any, case: Case) -> dict[str, Any]:
    """Call it on a healthy model, on an ill one, and on a healthy one with a spoilt input."""
    healthy, ill, spoilt = make_model(case, ill=False), make_model(case), case.x.clone()
    spoilt.select(0, case.spoilt)[(0,) * (spoilt.dim() - 1)] = torch.nan
    training, arrived = healthy.training, []
    behind = ill.get_submodule(case.names[3])  # it gets what the layer at fault puts out
    behind.register_forward_pre_hook(lambda layer, args: arrived.append(bool(args[0].isfinite().all())))
    return {
        "healthy": plain(nan_source(healthy, case.x.clone())),
        "out": healthy.out,
        "training": healthy.ran_in_training == training,
        "finds": plain(nan_source(ill, case.x.clone())),
        "mended": arrived[:1] == [True],
        "ill_out": ill.out,  # None if the answer stops the run when it has found what it looks for
        "input": plain(nan_source(make_model(case, ill=False), spoilt if case.turn else spoilt[:1])),
    }


PROBE = Probe("15.3", "nan_source", make_case, observe, cases=3, runs=1, restores=True)
