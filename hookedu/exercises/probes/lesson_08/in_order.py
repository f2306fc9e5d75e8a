"""What is observed of 08.1, `in_order(events)`: how it orders three lists of events."""

from typing import Any, NamedTuple

from hookedu.exercises.conduct import RNG
from hookedu.exercises.probes.lesson_08.shared import plain
from hookedu.exercises.probing import Draw, Probe
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


def make_case(rng: Draw) -> Case:
    """Return a case of two to four layers each; in turn 3, one of eighteen, whose numbers have one digit or two.

    The few events are any of them, as many of those of the last layer, those of backward in two layers, or a single one.
    """
    small, large = map(_events, rng.sample([2, 3, 4], 2) if rng.turn != 3 else (2, 18))
    some = [
        rng.sample(large, 7),
        [event for event in large if event[1] == large[-2][1]],
        [event for event in large if event[0] in BACKWARD and event[1] < 2],
        rng.sample(large, 1),
    ][rng.turn % 4]
    *both, some = (rng.sample(events, len(events)) for events in (small, large, some))
    return Case(both, some)


def observe(in_order: Any, case: Case) -> dict[str, Any]:
    """Order each list, and see what is left in the list that was handed in."""
    given = [list(events) for events in case.all]
    return {
        "all": [plain(in_order(events)) for events in given],
        "some": plain(in_order(list(case.some))),
        "given": plain(given[0]),
    }


# A list may be sorted in place; a model that is built to see what fires draws its weights at random.
PROBE = Probe("08.1", "in_order", make_case, observe, cases=4, changes=(0,), leaves=(RNG,))
