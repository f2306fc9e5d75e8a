"""What decides about 07.5, `stop_gradient(layer)`."""

from types import SimpleNamespace
from typing import Any

import torch

from hookedu.exercises import conduct
from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import MISRETURNED, NO_GRAD, as_in_key, said
from hookedu.exercises.criteria import Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_07.stop_gradient import PROBE, Case
from hookedu.exercises.tools import same


def _key(case: Case) -> SimpleNamespace:
    """Return the gradients that are wanted, those that flow without a hook, x, w, and what front gives."""
    front, other, _, layer, behind, _, _, x, (w, v) = case
    h, past = x @ front.weight.detach().T, w.T @ x
    zero, (at_w, at_v) = torch.zeros_like(past), [one @ behind.weight.detach() for one in (w, v)]
    want = {
        "own": at_w.T @ h,
        "inner": zero,
        "again": [zero, at_v.T @ h],
        "skip": [past, w],
        "triple": [zero, zero, zero, torch.einsum("no,ni,nj->oij", v, h, x @ other.weight.detach().T)],
        "first": past,
        "ended": "ok",
    }
    flowing = [(one @ layer.weight.detach()).T @ x for one in (at_w, at_v)]
    infinite = "; behind.weight[0, 0] == inf" * bool(behind.weight[0, 0].isinf())
    infinite += ", layer.weight[0, 1] == 0" * bool(layer.weight[0, 1] == 0)
    mode = "; layer.eval(); float64" * (not layer.training)
    return SimpleNamespace(**want, flowing=flowing, x=x, w=w, v=v, h=h, infinite=infinite, mode=mode)


def _stops(grad: Any) -> bool:
    """Check whether nothing flowed back: None, or zeros."""
    return grad is None or same(grad, torch.zeros(4, 3, dtype=grad.dtype))


def _alike(grad: Any, wanted: torch.Tensor) -> bool:
    """Check whether two gradients are equal, nan included."""
    return same(grad.isnan(), wanted.isnan()) and same(grad.nan_to_num(), wanted.nan_to_num())


def _stopped(name: str, n: int) -> Any:
    """Return the condition that the first n of these gradients are stopped, and that the rest is as wanted."""
    return lambda saw, key: (
        all(map(_stops, getattr(saw, name)[:n])) and same(getattr(saw, name)[n:], getattr(key, name)[n:])
    )


def _leaf_stops(saw: Any, key: Any) -> bool:
    """Check whether nothing flowed back to an input that is a leaf."""
    return saw.leaf is None or same(saw.leaf, torch.zeros_like(key.x))


def _only_leaf(saw: Any, key: Any) -> bool:
    """Check whether a gradient flows back to nothing but an input that is a leaf."""
    return bool(_stopped("triple", 3)(saw, key)) and not _leaf_stops(saw, key)


def _some_inputs(saw: Any, key: Any) -> bool:
    return not isinstance(saw.triple, str) and {*map(_stops, saw.triple[:3])} == {True, False}


def _freezes(saw: Any, key: Any) -> bool:
    return any(kind == conduct.REQUIRES_GRAD for kind, _ in saw.conduct)


_OF_OWN = {
    "freezes_layer": _freezes,
    "weights_too": lambda saw, key: saw.own is None or not saw.own.nan_to_num().any(),
}
_OF_INNER = {
    "times_zero": lambda saw, key: saw.inner.isnan().all(),
    "only_finite": lambda saw, key: key.infinite and _alike(saw.inner, key.flowing[0]),
    "nan_stays": lambda saw, key: saw.inner.isnan().any() and not saw.inner.nan_to_num(0).any(),
    "asks_training": lambda saw, key: key.mode and _alike(saw.inner, key.flowing[0]),
    "nothing_stops": lambda saw, key: _alike(saw.inner, key.flowing[0]),
}
_OF_FIRST = {
    "list_for_tuple": said("first", "should always return None"),
    "first_layer": said("first", ""),
}
_OF_SKIP = {
    "detaches_input": lambda saw, key: saw.skip[0] is None,
    "in_place": lambda saw, key: _stops(saw.skip[0]),
}
_RAISES = {"legacy": r"Cannot use both regular backward hooks"}
_FRONT, _OWN = "front.weight.grad", "layer.weight.grad"
_GIVEN = "h = front(x) == {key.h}; y = behind(layer(h)); loss = ({key.w} * y).sum(){key.infinite}{key.mode}"
_SKIP = "h = front(x) == {key.h}; y = layer(h) + h, where layer(h) is h + bias; loss = ({key.w} * y).sum()"
_TRIPLE = "y = layer(front(x), other(x), third(x)), where layer(a, b, c) is Bilinear(4, 4, 4)(a, b) + c; loss = ({key.v} * y).sum()"
_INPUTS = f"[{_FRONT}, other.weight.grad, third.weight.grad, {_OWN}]"
_FIRST = "x = {key.x} (requires_grad=False); y = layer(x); loss = ({key.w} * y).sum()"

EXERCISE = Exercise(
    PROBE,
    key=_key,
    suits=lambda case: not (case.x @ case.front.weight.detach().T == 0).any(),  # inf * 0 would be nan
    given=_GIVEN,
    checks=[
        as_in_key("own", "own", 0, _OF_OWN, essential=True, label=_OWN),
        as_in_key(
            "stopped",
            "inner",
            1,
            _OF_INNER,
            essential=True,
            ok=lambda saw, key: _stops(saw.inner),
            label=_FRONT,
        ),
        as_in_key(
            "again",
            "again",
            0,
            {"once": lambda saw, key: _alike(saw.again[0], key.flowing[1])},
            essential=True,
            ok=_stopped("again", 1),
            given=_GIVEN.replace("key.w", "key.v"),
            label=f"[{_FRONT}, {_OWN}]",
        ),
        as_in_key("skip", "skip", 1, _OF_SKIP, given=_SKIP, label=f"[{_FRONT}, layer.bias.grad]"),
        as_in_key("evaluation", "ended", 1, **NO_GRAD | {"given": "with torch.no_grad(): layer(h)"}),
        as_in_key("first", "first", 1, _OF_FIRST, given=_FIRST, label=_OWN, got="{value}"),
        as_in_key(
            "inputs",
            "triple",
            1,
            {
                "one_entry": said("triple", "invalid number of grad_input"),
                "one_input": _some_inputs,
                "only_computed": _only_leaf,
            },
            ok=lambda saw, key: _stopped("triple", 3)(saw, key) and _leaf_stops(saw, key),
            given=[Say("leaf", when=_only_leaf), _TRIPLE],
            expected=[Say("leaf_grad", when=_only_leaf, grad="None"), f"{_INPUTS} == {{value}}"],
            got=[
                Say("leaf_grad", when=_only_leaf, grad=lambda saw, key: show(saw.leaf)),
                f"{_INPUTS} == {{value}}",
            ],
        ),
        handle_works(
            "stop_gradient(layer)",
            lambda saw, key: _alike(saw.after[0], key.flowing[0]) and same(saw.after[1], key.own),
        ),
    ],
    raises={"cuts_output": r"does not require grad and does not have a grad_fn"} | _RAISES | MISRETURNED,
)
