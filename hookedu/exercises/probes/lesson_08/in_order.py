"""What is observed of 08.1, `in_order(events)`: how it orders three lists of events."""

import functools
import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probing import Probe
from hookedu.hooks.state import restored
from hookedu.hooks.timeline import timeline

Event = tuple[str, int]  # (kind, index of the layer)


class Case(NamedTuple):
    """Shuffled events: in `all` all those of two chains of layers, in `some` a few of the second chain."""

    all: list[list[Event]]
    some: list[Event]


@functools.cache
def fired(layers: int) -> tuple[Event, ...]:
    """Return the events of a chain of layers as PyTorch fires them.

    A layer's input is the output of the layer before it, so only the first layer has an input event of its own.
    """
    with restored():  # creating layers draws random numbers
        chain = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(layers)))
        events = timeline(chain, torch.ones(1, 2, requires_grad=True), layers=nn.Linear)
    return tuple((e.kind, int(e.path)) for e in events if e.kind != "input_grad" or e.path == "0")


def make_case(rng: random.Random) -> Case:
    """Return a case of two to four layers each."""
    small, large = map(fired, rng.sample([2, 3, 4], 2))
    some = rng.sample(large, rng.randint(6, 9))
    *both, some = (rng.sample(events, len(events)) for events in (small, large, some))
    return Case(both, some)


def observe(in_order: Any, case: Case) -> dict[str, Any]:
    """Order each list."""
    return {"all": [in_order(events) for events in case.all], "some": in_order(case.some)}


PROBE = Probe("08.1", "in_order", make_case, observe)
