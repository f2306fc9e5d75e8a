"""What decides about 07.3, `guided_relu(model)`."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_07.shared import MISRETURNED, all_differ, as_in_key, reads
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_07.guided_relu import PROBE, Net
from hookedu.exercises.tools import same

# What a ReLU may pass back of a gradient; `on` is where its input was above 0.
_RULES: dict[str, Any] = {
    "all": lambda grad, on: torch.where(on, grad, 0.0),
    "positive": lambda grad, on: torch.where(on, grad.clamp(min=0), 0.0),
    "positive, also where off": lambda grad, on: grad.clamp(min=0),
    "negative": lambda grad, on: torch.where(on, grad.clamp(max=0), 0.0),
    "size": lambda grad, on: torch.where(on, grad.abs(), 0.0),
}


def _readings(net: Net) -> dict[str, torch.Tensor]:
    """Return the gradients of x under different rules, computed by hand."""
    first, second, last = (m.weight.detach() for m in net.model.modules() if isinstance(m, nn.Linear))
    low = net.x @ first.T
    high = low.clamp(min=0) @ second.T

    def back(at_high: Any, at_low: Any) -> torch.Tensor:
        return at_low(at_high(net.w @ last, high > 0) @ second, low > 0) @ first

    found = {name: back(rule, rule) for name, rule in _RULES.items()}
    found["positive at one"] = back(_RULES["all"], _RULES["positive"])
    found["positive at x"] = found["all"].clamp(min=0)
    found["positive at x too"] = found["positive"].clamp(min=0)
    return found


def _key(nets: tuple[Net, Net]) -> SimpleNamespace:
    """Return what is wanted, and the gradients that x of the first net may get."""
    readings, others = map(_readings, nets)
    return SimpleNamespace(x_grad=readings["positive"], other=others["all"], full=True, readings=readings)


def _are_handles(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(one == HANDLE for one in value)


_MISTAKES = {
    "nothing_changed": reads("all"),
    "deconvnet": reads("positive, also where off"),
    "wrong_sign": reads("negative"),
    "absolute": reads("size"),
    "top_level_only": reads("positive at one"),
    "every_module": reads("positive at x too"),
    "only_the_model": reads("positive at x"),
}
_ANOTHER = "handles = guided_relu(model); (w * another_model(x)).sum().backward()"
_KINDS = {"expected": "register_full_backward_hook", "got": "register_backward_hook"}

EXERCISE = Exercise(
    PROBE,
    key=_key,
    suits=lambda nets: all(all_differ(_readings(net).values()) for net in nets),  # every rule shows
    given="model = Sequential(Linear, ReLU, Sequential(Linear, ReLU), Linear); x = {case[0].x}; "
    "loss = ({case[0].w} * model(x)).sum()",
    checks=[
        as_in_key("guided", "x_grad", 2, _MISTAKES, essential=True, label="x.grad"),
        as_in_key("others", "other", 1, {"every_model": True}, given=_ANOTHER, label="x.grad"),
        Check(
            "handle",
            ok=lambda saw, key: _are_handles(saw.handles) and same(saw.after, key.readings["all"]),
            points=1,
            given="handles = guided_relu(model)",
            expected=Say("two_handles"),
            got=lambda saw, key: show_kind(saw.handles),
            mistakes={"no_handle": lambda saw, key: not _are_handles(saw.handles)},
        ),
        as_in_key("full", "full", 1, {"legacy": True}, given="guided_relu(model)", **_KINDS),
    ],
    raises=MISRETURNED,
)
