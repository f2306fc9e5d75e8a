"""What is observed of 00.1, `double(grad)`: one call, and whether its result survives the next one."""

import math
from typing import Any

import torch

from hookedu.exercises.probing import Draw, Probe, call
from hookedu.exercises.tools import copies, same, whole

_SHAPES = ((3,), (1,), (2, 3), (1, 2, 1, 2))


def make_case(rng: Draw) -> tuple[torch.Tensor]:
    """Return a gradient: three whole numbers, then fractions, some negative, in another shape and order of storage."""
    shape = _SHAPES[rng.turn]
    values = whole(rng, math.prod(shape))
    if rng.turn:
        values = values / 4
        values[0] = -values[0].abs()
    grad = values.reshape(shape)
    return (grad if grad.ndim < 2 else grad.mT,)


def observe(double: Any, case: tuple[torch.Tensor]) -> dict[str, Any]:
    """Observe one call; `later` is the result after a call with another gradient, None if it is still the same."""
    results = []

    def keeping(grad: torch.Tensor) -> Any:
        results.append(double(grad))
        return results[-1]

    report, later = call(keeping, case), None
    double(-case[0])
    if isinstance(results[0], torch.Tensor) and not same(results[0], report["result"]):
        later = copies(results[0])
    return report | {"later": later}


PROBE = Probe("00.1", "double", make_case, observe, cases=len(_SHAPES))
