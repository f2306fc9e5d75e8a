"""Small things that probes and judges of many exercises share.

Inputs are made of small whole numbers: sums are exact, and a learner can redo them by hand.
"""

import random
from typing import Any

import torch


def whole(rng: random.Random, n: int) -> torch.Tensor:
    """n different whole numbers (float32), none of them 0, 1 or -1, so that no operation hides by luck."""
    return torch.tensor([float(v) for v in rng.sample([-9, -7, -5, -4, -3, -2, 2, 3, 4, 5, 7, 9], n)])


def copies(values: Any) -> Any:
    """The same structure with every tensor cloned: what a hook kept, as it is at this moment."""
    if isinstance(values, dict):
        return {key: copies(value) for key, value in values.items()}
    if isinstance(values, list):
        return [copies(value) for value in values]
    return values.detach().clone() if isinstance(values, torch.Tensor) else values


def same(got: Any, expected: Any) -> bool:
    """Equal in structure, dtype, shape and every value."""
    if isinstance(expected, torch.Tensor):
        return isinstance(got, torch.Tensor) and got.dtype == expected.dtype and torch.equal(got, expected)
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(same(got[k], expected[k]) for k in expected)
        )
    return isinstance(got, list) and len(got) == len(expected) and all(map(same, got, expected))


def close(got: Any, expected: torch.Tensor) -> bool:
    """A tensor of the same dtype and shape whose values differ by no more than rounding; NaN is never close."""
    return (
        isinstance(got, torch.Tensor)
        and (got.dtype, got.shape) == (expected.dtype, expected.shape)
        and torch.allclose(got, expected, rtol=1e-4, atol=1e-6)
    )
