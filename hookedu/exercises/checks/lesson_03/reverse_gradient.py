"""What decides about 03.5, `reverse_gradient(x, strength)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_03.reverse_gradient import PROBE, Case
from hookedu.exercises.tools import close, same


class Key(shared.Plain):
    """The gradient w that passes y, the gradient u of the other use of x, and the value of x."""

    def __init__(self, case: Case) -> None:
        paths, self.u, self.strength = case
        super().__init__(paths)
        self.x = paths.x


def _keeps(y: Any, x: torch.Tensor) -> bool:
    """Check whether y has the values of x up to rounding, which a formula without a hook may bring about."""
    return close(y, x, tolerance=100 * torch.finfo(x.dtype).eps)


# The calls that the probe makes after the backward pass, in this order.
_CALLS = (
    "x.requires_grad == False; y = reverse_gradient(x, strength)",
    "x.requires_grad == True; with torch.no_grad(): y = reverse_gradient(x, strength)",
    "x.requires_grad == False; with torch.no_grad(): y = reverse_gradient(x, strength)",
)


def _wrong_call(saw: Any, key: Key) -> int:
    """Return which of the calls gave a wrong value, a graph without grad mode, a gradient to data, or raised; else the first."""
    odd = [
        not _keeps(*of) or tracked or on
        for *of, tracked, on in zip(saw.calls, [key.x] * 3, saw.tracked, saw.turned_on, strict=True)
    ]
    return odd.index(True) if any(odd) else 0


def _shown(saw: Any, key: Key) -> tuple[str, str]:
    n = _wrong_call(saw, key)
    if saw.tracked[n]:
        return "y.grad_fn is None", "y.grad_fn is not None"
    if saw.turned_on[n]:
        return "y.requires_grad == False", "y.requires_grad == True"
    return f"y == {show(key.x)}", show(saw.calls[n]).strip("'")


_GIVEN = "strength = {key.strength:g}; x = {key.x}; y = reverse_gradient(x, strength); loss = ({key.u} * x).sum() + ({key.w} * y).sum()"

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_GIVEN,
    checks=[
        Check(
            "forward",
            "y",
            want=lambda key: key.x,
            equal=_keeps,
            essential=True,
            got=lambda saw, key: f"y == {shared.told(saw.y, key.x)}",
            mistakes={
                "changes_forward": Gives(lambda key: -key.strength * key.x, lambda key: -key.x),
                "no_return": lambda saw, key: saw.y is None,
                "returns_handle": lambda saw, key: saw.y == HANDLE,
            },
        ),
        shared.gradient(
            "reversed",
            lambda key: key.u - key.strength * key.w,
            label="dloss/dx",
            points=3,
            mistakes={
                "forgot_return": lambda saw, key: (
                    shared.nothing_given(saw, key) and same(saw.x_grad, key.u + key.w)
                ),
                "not_registered": lambda saw, key: not saw.hooks and same(saw.x_grad, key.u + key.w),
                "hooks_x": Gives(lambda key: -key.strength * (key.u + key.w)),
                "cut_off": lambda saw, key: not saw.reaches_x,
                "zero_strength": lambda saw, key: not key.strength and same(saw.x_grad, key.u - key.w),
                "no_strength": Gives(lambda key: key.u - key.w),
                "abs_strength": lambda saw, key: (
                    key.strength < 0 and same(saw.x_grad, key.u + key.strength * key.w)
                ),
                "no_minus": Gives(lambda key: key.u + key.strength * key.w),
            },
        ),
        shared.neighbour(given=_GIVEN.replace("* y)", "* (skip + y))") + "; skip = 2 * s"),
        shared.again(
            lambda key: key.u - key.strength * key.other,
            label="dloss/dx",
            given=_GIVEN.replace("key.w", "key.other"),
        ),
        shared.beside(
            "y = reverse_gradient(x, {key.strength:g}); y2 = reverse_gradient(x, {key.strength:g} + 3)",
            lambda key: -key.strength * key.w,
            {"cut_off": lambda saw, key: not saw.reaches_x},
            given="y = reverse_gradient(x, {key.strength:g}); y2 = reverse_gradient(x, {key.strength:g} + 3); loss = ({key.w} * y).sum()",
            label="dloss/dx",
        ),
        shared.asked(
            lambda key: [-key.strength * key.w, -key.strength * key.other],
            lambda key: (
                f"y = reverse_gradient(x, {key.strength:g}); first, = torch.autograd.grad(({{0}} * y).sum(), x); "
                f"second, = torch.autograd.grad(({{1}} * y).sum(), x)"
            ),
        ),
        Check(
            "of_leaf",
            "of_leaf",
            want=lambda key: key.u - key.strength * key.w,
            equal=close,
            essential=True,
            given=Say("leaf"),
            label="x.grad",
        ),
        Check(
            "no_grad",
            ok=lambda saw, key: (
                all(_keeps(y, key.x) for y in saw.calls) and not any(saw.tracked) and not any(saw.turned_on)
            ),
            points=1,
            given=lambda saw, key: _CALLS[_wrong_call(saw, key)],
            expected=lambda saw, key: _shown(saw, key)[0],
            got=lambda saw, key: _shown(saw, key)[1],
            mistakes={
                "no_return": lambda saw, key: saw.calls[_wrong_call(saw, key)] is None,
                "enables_grad": lambda saw, key: any(saw.tracked),
                "turns_on": lambda saw, key: any(saw.turned_on),
                "needs_gradient": lambda saw, key: "hook on a tensor" in saw.calls[_wrong_call(saw, key)],
            },
        ),
    ],
    raises=shared.NEEDS_CONTIGUOUS | shared.WRONG_HOOK,
)
