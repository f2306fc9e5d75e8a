"""What decides about 07.5, `stop_gradient(layer)`."""

from types import SimpleNamespace
from typing import Any

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import MISRETURNED, as_in_key
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_07.stop_gradient import PROBE, Case
from hookedu.exercises.tools import same


def _key(case: Case) -> SimpleNamespace:
    """Return the gradients that are wanted, that of front.weight without a hook, x, w, and what front gives."""
    front, layer, _, x, w = case
    h, past, flowing = x @ front.weight.detach().T, w.T @ x, (w @ layer.weight.detach()).T @ x
    want = {"own": w.T @ h, "inner": torch.zeros_like(past), "skip": past, "first": past}
    return SimpleNamespace(**want, flowing=flowing, x=x, w=w, h=h)


def _stopped(saw: Any, key: Any) -> bool:
    return saw.inner is None or same(saw.inner, key.inner)


def _frozen(saw: Any, key: Any) -> bool:
    return saw.own is None and not _stopped(saw, key)


def _past(saw: Any, key: Any) -> bool:
    return same([saw.skip, saw.shifted], [key.skip, key.w])


_FRONT, _OWN = "front.weight.grad", "layer.weight.grad"
_GIVEN = "h = front(x) == {key.h}; y = layer(h); loss = ({key.w} * y).sum()"
_SKIP = _GIVEN.replace("layer(h)", "layer(h) + h")
_FIRST = "x = {key.x} (requires_grad=False); y = layer(x); loss = ({key.w} * y).sum()"

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given=_GIVEN,
    checks=[
        as_in_key(
            "own", "own", 1, {"freezes_layer": _frozen, "weights_too": True}, essential=True, label=_OWN
        ),
        as_in_key("stopped", "inner", 1, {"nothing_stops": True}, essential=True, ok=_stopped, label=_FRONT),
        as_in_key("skip", "skip", 1, {"in_place": True}, ok=_past, given=_SKIP, label=_FRONT),
        as_in_key("first", "first", 1, {"first_layer": True}, given=_FIRST, label=_OWN, got="{value}"),
        handle_works("stop_gradient(layer)", lambda saw, key: same(saw.after, [key.flowing, key.own])),
    ],
    raises={"cuts_output": r"does not require grad and does not have a grad_fn"} | MISRETURNED,
)
