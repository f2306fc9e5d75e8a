"""What the checks of lesson 14 share: how results are compared, and how a message shows the first that differ."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.observation import show


def near(got: Any, expected: Any) -> bool:
    """Check whether two tensors, or structures of them, are equal up to the rounding of another order of operations.

    Logits are about 1 here: their differences that matter are much larger.
    """
    if isinstance(expected, list | tuple):
        return isinstance(got, list) and len(got) == len(expected) and all(map(near, got, expected))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(near(got[k], expected[k]) for k in expected)
        )
    if not isinstance(expected, torch.Tensor):
        return type(got) is type(expected) and got == expected
    return (
        isinstance(got, torch.Tensor)
        and (got.dtype, got.shape) == (expected.dtype, expected.shape)
        and torch.allclose(got, expected.detach(), rtol=1e-4, atol=1e-4)
    )


def first_difference(
    name: str, got: Callable[[Any, Any], Any], want: Callable[[Any], torch.Tensor]
) -> dict[str, Any]:
    """Return the lines `expected` and `got` of a check, as code.

    They show what is no tensor, else a dtype or shape that differs, else the first row of numbers that does: logits
    are too many to show them all.
    """

    def line(saw: Any, key: Any, shown: Any) -> str:
        found, wanted = got(saw, key), want(key)
        if not isinstance(found, torch.Tensor):
            return f"type({name}) == torch.Tensor" if shown is wanted else f"{name} == {show(shown)}"
        for what in ("dtype", "shape"):
            if getattr(found, what) != getattr(wanted, what):
                value = getattr(shown, what)
                return f"{name}.{what} == {tuple(value) if what == 'shape' else value}"
        rows = zip(found.flatten(0, -2), wanted.flatten(0, -2), strict=True) if wanted.dim() > 1 else ()
        n = next((n for n, (one, other) in enumerate(rows) if not near(one, other)), None)
        if n is None:
            return f"{name} == {show(shown)}"
        place = [int(i) for i in torch.unravel_index(torch.tensor(n), wanted.shape[:-1])]
        numbers = ", ".join(f"{v:.4g}" for v in shown.flatten(0, -2)[n, :4].tolist())
        return f"{name}[{', '.join(map(str, place))}, :4] == [{numbers}]"

    return {
        "expected": lambda saw, key: line(saw, key, want(key)),
        "got": lambda saw, key: line(saw, key, got(saw, key)),
    }
