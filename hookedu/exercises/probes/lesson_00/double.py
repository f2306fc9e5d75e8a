"""What is observed of 00.1, `double(grad)`: one call, its result's type, and a second call for the same tensor, changed."""

import math
from typing import Any

import torch

from hookedu.exercises.probing import Draw, Probe, call
from hookedu.exercises.tools import copies, same, whole

EMPTY = (2, 0, 3)
_SHAPES = ((3,), (1,), (2, 3), (1, 2, 1, 2), ())


def make_case(rng: Draw) -> tuple[torch.Tensor]:
    """Return a gradient: three whole numbers, then fractions, some negative, in another shape and order of storage.

    The fractions have more digits than float16 and bfloat16 hold. In turn 3 one is infinite, one is
    nan, and of one the double is infinite: halved again, it is not what it was.
    """
    shape = _SHAPES[rng.turn]
    values = whole(rng, math.prod(shape))
    if rng.turn:
        values = values / 4 + 2**-12
        values[0] = -values[0].abs()
    if rng.turn == 3:
        values[1:] = torch.tensor([torch.inf, 2.0**127, torch.nan])
    grad = values.reshape(shape)
    return (grad if grad.ndim < 2 else grad.mT,)


def alike(got: Any, wanted: Any) -> bool:
    """Check whether two tensors are equal in dtype, shape and every value, nan included."""
    return same(got.isnan(), wanted.isnan()) and same(got.nan_to_num(), wanted.nan_to_num())


def observe(double: Any, case: tuple[torch.Tensor]) -> dict[str, Any]:
    """Observe one call, and another one after the sign of the gradient has changed in place.

    `later` is the first result after the second call, None if it is still the same; `itself` tells whether a gradient of
    zeros comes back as it is, `empty` the shape of what comes back of a tensor of no numbers.
    """
    results = []

    def keeping(grad: torch.Tensor) -> Any:
        results.append(double(grad))
        return results[-1]

    before = copies(case[0])
    report, later = call(keeping, case), None
    report["changed"] = not alike(case[0], before)
    report["second"] = copies(double(case[0].neg_()))
    if isinstance(results[0], torch.Tensor) and not alike(results[0], report["result"]):
        later = copies(results[0])
    zeros = torch.zeros_like(case[0])
    nothing = double(zeros)
    itself = isinstance(nothing, torch.Tensor) and nothing.data_ptr() == zeros.data_ptr()
    empty = [*getattr(double(torch.ones(EMPTY)), "shape", ())]
    return report | {"later": later, "itself": itself, "empty": empty}


PROBE = Probe("00.1", "double", make_case, observe, cases=len(_SHAPES))
