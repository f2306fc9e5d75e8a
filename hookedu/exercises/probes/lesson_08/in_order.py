"""What is observed of 08.1, `in_order(events)`: how it orders three lists of events."""

import random
from typing import Any, NamedTuple

from hookedu.exercises.probing import Probe
from hookedu.hooks.timeline import BACKWARD, FORWARD

Event = tuple[str, int]  # (kind, index of the layer)


class Case(NamedTuple):
    """Shuffled events: in `all` all those of two chains of layers, in `some` a few of the second chain."""

    all: list[list[Event]]
    some: list[Event]


def _events(layers: int) -> list[Event]:
    """Return the events of a chain of layers by kind, which is not the order in which they happen.

    A layer's input is the output of the layer before it, so only the first layer has an input event of its own.
    """
    kinds = (*FORWARD, *BACKWARD)
    return [(kind, layer) for kind in kinds for layer in range(layers) if kind != "input_grad" or layer == 0]


def make_case(rng: random.Random) -> Case:
    """Return a case of two to four layers each."""
    small, large = map(_events, rng.sample([2, 3, 4], 2))
    some = rng.sample(large, rng.randint(6, 9))
    *both, some = (rng.sample(events, len(events)) for events in (small, large, some))
    return Case(both, some)


def observe(in_order: Any, case: Case) -> dict[str, Any]:
    """Order each list."""
    return {"all": [in_order(events) for events in case.all], "some": in_order(case.some)}


PROBE = Probe("08.1", "in_order", make_case, observe)
