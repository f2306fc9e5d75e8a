"""Why another hook fired than the one that a learner of HookTimeline predicted."""

from collections.abc import Sequence

from hookedu.hooks.events import Event
from hookedu.hooks.timeline import FORWARD


def why(events: Sequence[Event], fired: Event, guessed: Event) -> str:
    """Return the reason as a key of the widget's words; "" where there is none to give.

    Parameters
    ----------
    events : sequence of Event
        The whole run.
    fired : Event
        What fired.
    guessed : Event
        When the predicted hook fires: from there on, or else the last time before.
    """
    forward, later = fired.kind in FORWARD, guessed.order > fired.order
    if forward is not (guessed.kind in FORWARD):
        # With checkpoints there is more of the forward pass during backward.
        turns = [(event.kind in FORWARD) for event in events]
        if forward:
            return "why_backward_waits" if later and all(turns[: fired.order]) else ""
        return "why_forward_over" if not later and not any(turns[fired.order :]) else ""
    if not later:
        return ""
    within, around = _inside(fired, guessed), _inside(guessed, fired)
    apart = fired.path != guessed.path and not within and not around
    if not forward:
        return "why_reverse" if apart and _ran(events, fired) > _ran(events, guessed) else "why_waits"
    if within and guessed.kind == "forward":
        return "why_inside"
    if around and fired.kind == "forward_pre":
        return "why_outside"
    if (fired.path, fired.call, fired.kind) == (guessed.path, guessed.call, "forward_pre"):
        return "why_after"
    return "why_order" if apart else ""


def _inside(event: Event, other: Event) -> bool:
    """Check whether the module of an event lies inside that of the other."""
    return event.path != other.path and f".{event.path}.".startswith(f".{other.path}.".replace("..", "."))


def _ran(events: Sequence[Event], event: Event) -> int:
    """Return the place of the last event in which the module of an event ran, -1 if it has none."""
    return max((e.order for e in events if e.path == event.path and e.kind in FORWARD), default=-1)
