"""What is observed of 10.3, `first_nan(model, x)`: its results on four models, and what it leaves on them."""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_10.shared import Chain, all_hooks, interrupted
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import whole


class Layer(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.forward = function


class Case(NamedTuple):
    """Names of the three modules in the body, in the order of running; the input; divisors; a spoilt input."""

    inner: Sequence[str]
    x: torch.Tensor
    by: torch.Tensor
    spoilt: torch.Tensor


def make_case(rng: random.Random) -> Case:
    """Return a case with an input of three numbers; the spoilt one has a nan."""
    names = ("centre", "shift", "norm", "mix", "gate")
    inner, x, by = rng.sample(names, 3), whole(rng, 3).reshape(1, 3), whole(rng, 3)
    return Case(inner, x, by, spoilt=torch.where(torch.arange(3) == 1, torch.nan, x))


def make_model(case: Case, ill: bool = False, broken: bool = False) -> Chain:
    """Build the model, which produces nan where it is `ill`.

    `scale` then computes x / 0 and makes inf of clean numbers, the middle module of the body computes inf - inf and makes
    nan of that, `clean` removes it, and `again` computes 0 / 0 and produces nan anew.
    """
    first, middle, last = case.inner
    by = torch.where(torch.arange(3) == 0, 0.0, case.by) if ill else case.by
    body = {last: nn.Identity(), middle: Layer(lambda x: x - x[..., :1]), first: nn.Identity()}
    children = {
        "tail": nn.Identity(),
        "again": Layer(lambda x: x / by),
        "body": Chain(body, case.inner),
        "clean": Layer(torch.zeros_like if ill else torch.nan_to_num),
        "scale": Layer(lambda x: x / by),
        "stem": Layer(lambda x: x / case.by),
        "spare": nn.Tanh(),
    }
    return Chain(children, ("stem", "scale", "body", "clean", "again", "tail"), broken)


def observe(first_nan: Any, case: Case) -> dict[str, Any]:
    """Call it on an ill and a healthy model, on a healthy one with nan in the input, and on one that raises."""
    ill, healthy, other = make_model(case, ill=True), make_model(case), make_model(case)
    return {
        "finds": first_nan(ill, case.x.clone()),
        "healthy": first_nan(healthy, case.x.clone()),
        "out": healthy.out,
        "input": first_nan(other, case.spoilt),
        "left": sum(map(all_hooks, (ill, healthy, other))),
        # The broken model is healthy, because an answer may stop the run at the first nan.
        **interrupted(first_nan, make_model(case, broken=True), case.x),
    }


PROBE = Probe("10.3", "first_nan", make_case, observe)
