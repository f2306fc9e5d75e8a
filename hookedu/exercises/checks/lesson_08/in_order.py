"""What decides about 08.1, `in_order(events)`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_08.in_order import PROBE, Case, Event
from hookedu.exercises.tools import same
from hookedu.hooks.timeline import BACKWARD, FORWARD, timeline

_Order = Callable[[Event], Any]  # a key to sort events by
_PLACES = {
    kind: float(n) for n, kind in enumerate((*FORWARD, *BACKWARD))
}  # from forward_pre, 0, to input_grad, 7
_OF_PARAMETERS = ("param_grad", "post_accumulate")


@functools.cache
def _fired(layers: int) -> tuple[Event, ...]:
    """Return the events of a chain of layers as PyTorch fires them."""
    chain = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(layers)))
    events = timeline(chain, torch.ones(1, 2, requires_grad=True), layers=nn.Linear)
    return tuple((e.kind, int(e.path)) for e in events if e.kind != "input_grad" or e.path == "0")


def _in_order(events: list[Event]) -> list[Event]:
    return [event for event in _fired(1 + max(layer for _, layer in events)) if event in events]


def _wrong(saw: Any, case: Case) -> int:
    """Return which of the lists in `all` came back in another order; the first if none did."""
    return next((i for i, events in enumerate(case.all) if not same(saw.all[i], _in_order(events))), 0)


def _written(events: Any) -> str:
    """Format a list of events for a message, at most 40 of them: no case has more."""
    try:
        return ", ".join(f"{kind[:20]} {layer:d}" for kind, layer in events[:40]) or show(events)
    except (TypeError, ValueError, LookupError):  # not a list of events
        return show(events)


def _by(rising: bool = False, last: Sequence[str] = (), **places: float) -> _Order:
    """Return the order of forward, then backward, each layer by layer, with some kinds at other places."""
    at = _PLACES | places
    return lambda e: (e[0] in last, e[0] in BACKWARD, e[1] if rising or e[0] in FORWARD else -e[1], at[e[0]])


def _sorts(*orders: _Order) -> Gives:
    """Condition: all lists are in one of these orders."""
    return Gives(*(lambda case, by=by: [sorted(events, key=by) for events in case.all] for by in orders))


EXERCISE = Exercise(
    PROBE,
    checks=[
        Check(
            "order",
            "all",
            want=lambda case: [_in_order(events) for events in case.all],
            points=3,
            essential=True,
            given=lambda saw, case: f"in_order({_written(case.all[_wrong(saw, case)])})",
            expected=lambda saw, case: _written(_in_order(case.all[_wrong(saw, case)])),
            got=lambda saw, case: _written(saw.all[_wrong(saw, case)]),
            mistakes={
                "returns_nothing": Gives(lambda case: [None, None]),
                "as_given": Gives(lambda case: case.all),
                "first_layer_first": _sorts(_by(rising=True)),
                "kind_by_kind": _sorts(
                    lambda e: _PLACES[e[0]],  # layers in the given order
                    lambda e: (_PLACES[e[0]], e[1]),
                    lambda e: (_PLACES[e[0]], e[1] if e[0] in FORWARD else -e[1]),
                ),
                "layer_by_layer": _sorts(lambda e: (e[1], _PLACES[e[0]])),
                "pre_hook_first": _sorts(_by(backward_pre=1.5)),
                "parameters_after_backward": _sorts(_by(backward=3.5), _by(backward=3.5, input_grad=3.6)),
                "parameters_last": _sorts(_by(last=_OF_PARAMETERS), _by(rising=True, last=_OF_PARAMETERS)),
                "accumulated_first": _sorts(_by(post_accumulate=3.5)),
                "input_before_backward": _sorts(_by(input_grad=5.5), _by(input_grad=1.5)),
            },
        ),
        Check(
            "only_given",
            "some",
            want=lambda case: _in_order(case.some),
            points=1,
            given=lambda saw, case: f"in_order({_written(case.some)})",
            expected=lambda saw, case: _written(_in_order(case.some)),
            got=lambda saw, case: _written(saw.some),
            mistakes={"invents_events": lambda saw, case: len(saw.some) > len(case.some)},
        ),
    ],
)
