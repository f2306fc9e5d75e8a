"""Helpers shared by the probes and judges of many exercises.

Inputs are made of small whole numbers: sums are exact, and a learner can verify them by hand.
"""

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

import torch
from torch import nn

# What is raised in turn in a block or in a model: an answer may single out no type.
ERRORS: tuple[type[Exception], ...] = (
    *(RuntimeError, ValueError, KeyError, AttributeError, TypeError),
    *(OSError, AssertionError, ZeroDivisionError, ImportError),
)


def whole(rng: random.Random, n: int) -> torch.Tensor:
    """Return n different whole numbers (float32), at most 12.

    None of them is 0, 1 or -1, with which different operations could give the same result by luck.
    """
    return torch.tensor([float(v) for v in rng.sample([-9, -7, -5, -4, -3, -2, 2, 3, 4, 5, 7, 9], n)])


def copies(values: Any) -> Any:
    """Return the same structure with every tensor detached and cloned: a snapshot of what a hook kept."""
    if isinstance(values, dict):
        return {key: copies(value) for key, value in values.items()}
    if isinstance(values, list):
        return [copies(value) for value in values]
    if type(values) is tuple:
        return tuple(copies(value) for value in values)
    return values.detach().clone() if isinstance(values, torch.Tensor) else values


def rebuilt(value: list | tuple, items: Iterable[Any]) -> Any:
    """Return items as a plain tuple or list, as `value` is one: of a subclass, `encode` would keep only the name."""
    return tuple(items) if isinstance(value, tuple) else list(items)


def same(got: Any, expected: Any) -> bool:
    """Check whether two values are equal in structure, type, dtype, shape and every value.

    Numbers of different types differ (3 and 3.0, 1 and True). A list and a tuple with the same items are equal: an
    answer may use either, unless its exercise asks for one.
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
    """Check whether `got` is a tensor of the same dtype and shape with equal values up to rounding.

    `tolerance` is relative; the absolute tolerance is a hundredth of it. NaN is never close to anything.
    """
    return (
        isinstance(got, torch.Tensor)
        and (got.dtype, got.shape) == (expected.dtype, expected.shape)
        and torch.allclose(got, expected.detach(), rtol=tolerance, atol=tolerance / 100)
    )


def all_close(got: Any, expected: Mapping[str, torch.Tensor | None], tolerance: float = 1e-4) -> bool:
    """Check whether `got` has the same names, and for each a close tensor or None in both."""
    return (
        isinstance(got, dict)
        and got.keys() == expected.keys()
        and all(close(got[k], v, tolerance) if v is not None else got[k] is None for k, v in expected.items())
    )


def attempted(what: Callable[[], Any]) -> Any:
    """Return what a call returns, or what it raises, as text, if something does not fit a tensor or None."""
    try:
        return what()
    except (RuntimeError, TypeError, AttributeError, LookupError, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:200]


def gradients(model: nn.Module) -> dict[str, torch.Tensor | None]:
    """Return a copy of the .grad of every parameter, by name."""
    return {name: copies(parameter.grad) for name, parameter in model.named_parameters()}


def backward_hooks(module: nn.Module) -> int:
    """Return the number of hooks of the backward pass registered on a module."""
    return len(module._backward_hooks) + len(module._backward_pre_hooks)


def module_hooks(model: nn.Module) -> int:
    """Return the number of forward hooks and forward pre-hooks registered on all modules of a model."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def noted(tensor: torch.Tensor) -> list[bool]:
    """Note, whenever a hook of a tensor runs from now on, whether it returns something; return these notes."""
    notes: list[bool] = []

    def noting(hook: Callable) -> Callable:
        @wraps(hook)
        def call(grad: torch.Tensor) -> Any:
            new = hook(grad)
            notes.append(new is not None)
            return new

        call.__name__ = getattr(hook, "__name__", "<unknown>")  # PyTorch names it in its errors
        return call

    hooks = tensor._backward_hooks or {}
    for key, hook in hooks.items():
        hooks[key] = noting(hook)
    return notes


def is_manager(value: Any) -> bool:
    """Check whether a value is a context manager."""
    return hasattr(type(value), "__enter__") and hasattr(type(value), "__exit__")


def linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """Return an nn.Linear with this weight, and with a bias of 0 if none is given."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.zeros(weight.shape[0]) if bias is None else bias)
    return layer


@contextlib.contextmanager
def other_weights(model: nn.Module) -> Iterator[None]:
    """Turn all parameters of a model round while the block runs, and afterwards take off the hooks that it left."""
    tables = [table for m in model.modules() for name, table in vars(m).items() if name.endswith("_hooks")]
    hooks = [set(table) for table in tables]
    before = [(parameter, parameter.detach().clone()) for parameter in model.parameters()]
    with torch.no_grad():
        for parameter, values in before:
            parameter.copy_(values.flip(0))
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, values in before:
                parameter.copy_(values)
        for table, own in zip(tables, hooks, strict=True):
            for added in table.keys() - own:
                del table[added]


def someones(hook: Any) -> Any:
    """Mark a function as somebody's who works in the notebook, for a hook that no answer may take off.

    `list_hooks` then names its owner "user", as that of a learner's own: an answer that removes all hooks of "user" removes
    this one, too, and that is observed.
    """
    hook.__module__ = "__main__"
    return hook
