"""Small things that probes and judges of many exercises share.

Inputs are made of small whole numbers: sums are exact, and a learner can redo them by hand.
"""

import random
from typing import Any

import torch
from torch import nn

from hookedu.hooks.tensors import map_tensors


def whole(rng: random.Random, n: int) -> torch.Tensor:
    """N different whole numbers (float32), none of them 0, 1 or -1, so that no operation hides by luck."""
    return torch.tensor([float(v) for v in rng.sample([-9, -7, -5, -4, -3, -2, 2, 3, 4, 5, 7, 9], n)])


def copies(values: Any) -> Any:
    """The same structure with every tensor cloned: what a hook kept, as it is at this moment."""
    return map_tensors(lambda tensor: tensor.detach().clone(), values)


def same(got: Any, expected: Any) -> bool:
    """Check whether two values are equal in structure, type, dtype, shape and every value.

    Numbers of different types are not the same (3 and 3.0, 1 and True); a list and a tuple are, for both are lists
    once they have been observed.
    """
    if isinstance(expected, torch.Tensor):
        return isinstance(got, torch.Tensor) and got.dtype == expected.dtype and torch.equal(got, expected)
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(same(got[k], expected[k]) for k in expected)
        )
    if isinstance(expected, list | tuple):
        return isinstance(got, list | tuple) and len(got) == len(expected) and all(map(same, got, expected))
    return type(got) is type(expected) and got == expected


def close(got: Any, expected: torch.Tensor, tolerance: float = 1e-4) -> bool:
    """A tensor of the same dtype and shape whose values differ by no more than rounding; NaN is never close."""
    return (
        isinstance(got, torch.Tensor)
        and (got.dtype, got.shape) == (expected.dtype, expected.shape)
        and torch.allclose(got, expected.detach(), rtol=tolerance, atol=tolerance / 100)
    )


def all_close(got: Any, expected: dict[str, torch.Tensor | None]) -> bool:
    """The same names, and for each the same tensor but for rounding, or None in both."""
    return (
        isinstance(got, dict)
        and got.keys() == expected.keys()
        and all(close(got[k], v) if v is not None else got[k] is None for k, v in expected.items())
    )


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """A copy of every parameter's .grad, by name."""
    return {name: copies(parameter.grad) for name, parameter in model.named_parameters()}


def module_hooks(model: nn.Module) -> int:
    """How many forward hooks and forward pre-hooks a model carries now, all its modules together."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def is_manager(value: Any) -> bool:
    """Whether a value can stand in a `with`."""
    return hasattr(type(value), "__enter__") and hasattr(type(value), "__exit__")


def linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """nn.Linear with these weights, and a bias of 0 where none is given."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.zeros(weight.shape[0]) if bias is None else bias)
    return layer
