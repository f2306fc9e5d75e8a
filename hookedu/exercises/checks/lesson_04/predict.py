"""What decides about 04.1, `predict(k, m, s)`."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_04.predict import PROBE, Case

# The four values, and known wrong formulas for each by the id of the mistake. The settings of the probe are such
# that none of them gives the right values, nor those of another, in all of them.
_VALUES = {
    "look": {"hook_sees_later_change": lambda k, m, s: m + s, "hook_adds_up": lambda k, m, s: 2 * m},
    "y.grad": {
        "retain_before_hooks": lambda k, m, s: 2 * m,
        "retain_one_pass": lambda k, m, s: m + s,
        "adds_s_once": lambda k, m, s: 2 * m + s,
    },
    "look_w": {
        "change_stays_on_y": lambda k, m, s: k * m,
        "leaf_hook_adds_up": lambda k, m, s: 2 * k * (m + s),
        "forgets_chain_rule": lambda k, m, s: m + s,
    },
    "look_after: param.grad": {
        "post_one_pass": lambda k, m, s: k * (m + s),
        "adds_s_once": lambda k, m, s: k * (2 * m + s),
    },
}


@cache
def _truth(k: float, m: float, s: float) -> list[float]:
    """Run the program of the task and return the four values that PyTorch reports."""
    seen: dict[str, torch.Tensor] = {}
    w: Any = torch.tensor(1.0, requires_grad=True)
    y: Any = k * w
    y.register_hook(lambda grad: seen.update(look=grad))
    y.retain_grad()
    y.register_hook(lambda grad: grad + s)
    w.register_hook(lambda grad: seen.update(look_w=grad))
    w.register_post_accumulate_grad_hook(lambda param: seen.update(look_after=param.grad.clone()))
    (m * y).backward(retain_graph=True)
    (m * y).backward()
    return [value.item() for value in (seen["look"], y.grad, seen["look_w"], seen["look_after"])]


def _four(values: Any) -> list[float] | None:
    """Return the four numbers, or None if there are none; one-element tensors count as numbers."""
    if isinstance(values, torch.Tensor) and values.dim() == 1:
        values = values.tolist()
    if not isinstance(values, list) or len(values) != len(_VALUES):
        return None
    plain: list[Any] = [v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for v in values]
    return plain if all(type(v) in (int, float) for v in plain) else None


def _unreadable(saw: Any, case: Case) -> str:
    """Return the first call that did not predict four numbers, or the first of all."""
    return next((call for call in case if _four(saw.predicted[call]) is None), next(iter(case)))


def _value(place: int, what: str, wrong: dict[str, Callable[[float, float, float], float]]) -> Check:
    """Require one of the four values in every setting; the message shows the first setting that is wrong."""

    def predicted(saw: Any) -> dict[str, float]:
        return {call: (_four(values) or [math.nan] * 4)[place] for call, values in saw.predicted.items()}

    def truth(case: Case) -> dict[str, float]:
        return {call: _truth(*setting)[place] for call, setting in case.items()}

    def shown(saw: Any, case: Case) -> str:
        return next((call for call in case if predicted(saw)[call] != truth(case)[call]), next(iter(case)))

    return Check(
        f"value_{place + 1}",
        ok=lambda saw, case: predicted(saw) == truth(case),
        points=1,
        given=shown,
        expected=lambda saw, case: f"{what} == {truth(case)[shown(saw, case)]:g}",
        got=lambda saw, case: f"{what} == {predicted(saw)[shown(saw, case)]:g}",
        mistakes={
            id: lambda saw, case, f=formula: predicted(saw) == {call: f(*s) for call, s in case.items()}
            for id, formula in wrong.items()
        },
    )


EXERCISE = Exercise(
    PROBE,
    checks=[
        Check(
            "four_numbers",
            ok=lambda saw, case: all(map(_four, saw.predicted.values())),
            essential=True,
            given=_unreadable,
            expected=Say("four_numbers"),
            got=lambda saw, case: show(saw.predicted[_unreadable(saw, case)]),
            mistakes={
                "returns_nothing": lambda saw, case: saw.predicted[_unreadable(saw, case)] is None,
                "not_four_numbers": True,
            },
        ),
        *(_value(place, what, wrong) for place, (what, wrong) in enumerate(_VALUES.items())),
    ],
    raises={"divides": r"^ZeroDivisionError"},
)
