"""What decides about 08.1, `in_order(events)`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from hookedu.exercises.criteria import Check, Gives, Line, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
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


_Lists = Callable[[Any, Case], tuple[Any, list[Event]]]  # what came back, and what should have


def _of_all(saw: Any, case: Case) -> tuple[Any, list[Event]]:
    """Return the first of the lists in `all` that came back in another order; the first if none did."""
    pairs = [(got, _in_order(events)) for got, events in zip(saw.all, case.all, strict=True)]
    return next((pair for pair in pairs if not same(*pair)), pairs[0])


def _of_some(saw: Any, case: Case) -> tuple[Any, list[Event]]:
    return saw.some, _in_order(case.some)


def _comes(lists: _Lists, n: int) -> Line:
    """Return lines that tell, in the list that came back (0) or should have (1), the event where they first differ."""

    def place(saw: Any, case: Case) -> int:
        got, want = lists(saw, case)
        got = got if isinstance(got, list) else []
        equal = (same(*pair) for pair in zip(got, want, strict=False))
        return next((i for i, is_equal in enumerate(equal) if not is_equal), min(len(got), len(want)))

    def event(saw: Any, case: Case, before: int = 0) -> str:
        found = lists(saw, case)[n][place(saw, case) - before]
        return " ".join(map(str, found)) if isinstance(found, list | tuple) else show(found)

    def before(saw: Any, case: Case) -> str:
        return event(saw, case, before=1)

    return [
        Say("first", when=lambda saw, case: place(saw, case) == 0 and event(saw, case), event=event),
        Say("last", when=lambda saw, case: place(saw, case) == len(lists(saw, case)[n]) > 0, event=before),
        Say("next", when=event, before=before, event=event),
        lambda saw, case: show(lists(saw, case)[n]),
    ]


def _begins(kinds: Sequence[str], layer: Callable[[list[Event]], int]) -> Of:
    """Condition: in all lists the first event of one of these kinds is that of `layer(events)`."""
    return lambda saw, case: all(
        next(event[1] for event in got if event[0] in kinds) == layer(events)
        for got, events in zip(saw.all, case.all, strict=True)
    )


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
            points=2,
            essential=True,
            given=Say(
                "shuffled",
                n=lambda saw, case: len(_of_all(saw, case)[1]),
                layers=lambda saw, case: 1 + max(layer for _, layer in _of_all(saw, case)[1]),
            ),
            expected=_comes(_of_all, 1),
            got=_comes(_of_all, 0),
            mistakes={
                "returns_nothing": Gives(lambda case: [None, None]),
                "not_a_list": lambda saw, case: all(isinstance(got, Opaque | dict | str) for got in saw.all),
                "as_given": Gives(lambda case: case.all),
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
                "last_layer_first": _begins(FORWARD, lambda events: max(layer for _, layer in events)),
                "first_layer_first": _begins(BACKWARD, lambda events: 0),
            },
        ),
        Check(
            "only_given",
            "some",
            want=lambda case: _in_order(case.some),
            points=1,
            given=lambda saw, case: f"in_order([{', '.join(map(show, case.some))}])",
            expected=_comes(_of_some, 1),
            got=_comes(_of_some, 0),
            mistakes={
                "invents_events": lambda saw, case: any(tuple(e) not in case.some for e in saw.some),
                "loses_events": lambda saw, case: len(saw.some) < len(case.some),
            },
        ),
        Check(
            "given_list",
            ok=lambda saw, case: sorted(map(tuple, saw.given)) == sorted(case.all[0]),
            points=1,
            given="in_order(events); events",
            expected=Say("left", n=lambda saw, case: len(case.all[0])),
            got=Say("left", n=lambda saw, case: len(saw.given)),
            mistakes={"takes_away": lambda saw, case: len(saw.given) < len(case.all[0])},
        ),
    ],
)
