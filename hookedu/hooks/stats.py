"""Statistics of a tensor, and of several taken together."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from hookedu.hooks.tensors import Placeholder, real, shape_text, sizes

_OF_TORCH = (torch.Tensor, torch.nn.Parameter)
_LONG = (torch.int32, torch.int64)  # more than the 24 bits of float32


class Stats(Placeholder):
    """Summary statistics of one tensor, fetched lazily.

    They stay on the tensor's device until they are read, so that a hook never waits for a GPU. Reading
    one synchronises.

    Attributes
    ----------
    shape : tuple of int
        Shape of the tensor.
    dtype : torch.dtype
        Element type of the tensor.
    count, nan, inf : int
        Number of all elements, of NaN, and of infinities of either sign.
    min, max, mean, std : float
        Over the finite elements, of the absolute values if the tensor is complex; std is unbiased, as
        torch.std.
    zeros : float
        Fraction of elements that are zero, from 0 to 1. What cannot be known, such as that of no elements, is NaN.
    """

    NUMBERS = ("count", "nan", "inf", "min", "max", "mean", "std", "zeros")
    __slots__ = ("_numbers", "dtype", "shape")

    def __init__(self, tensor: torch.Tensor) -> None:
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may refuse to be looked at
            self.shape, self.dtype = sizes(tensor), tensor.dtype
            try:
                self._numbers = _numbers(tensor.detach() if tensor.requires_grad else tensor)
            except (
                Exception
            ):  # such as float4, which has no operations, or a wrapper of vmap that has left its function
                self._numbers = _unknown(tensor)

    def __getattr__(self, name: str) -> float:
        if name not in self.NUMBERS:
            raise AttributeError(name)
        try:
            number = float(self._numbers[self.NUMBERS.index(name)])
        except RuntimeError:  # inside of vmap a tensor has no numbers that could be read
            return torch.nan
        return int(number) if name in ("count", "nan", "inf") else number

    def as_dict(self) -> dict[str, Any]:
        """Return all statistics by name, as Python values."""
        numbers = {name: getattr(self, name) for name in self.NUMBERS}
        return {"shape": self.shape, "dtype": self.dtype} | numbers

    @classmethod
    def merged(cls, several: "Sequence[Stats]") -> "Stats":
        """Return the statistics of several tensors taken together; `shape` is () unless all have the same."""
        result = copy.copy(several[0])
        if len(several) > 1:
            result.shape = several[0].shape if len({one.shape for one in several}) == 1 else ()
            rows = [torch.as_tensor(one._numbers, dtype=torch.float64, device="cpu") for one in several]
            result._numbers = _merged(torch.stack(rows))
        return result

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name):.4g}" for name in self.NUMBERS)
        return f"Stats({shape_text(self.shape)} {str(self.dtype).removeprefix('torch.')}: {numbers})"


def _numbers(tensor: torch.Tensor) -> Sequence[float] | torch.Tensor:
    """Return the eight numbers of `Stats`, as one float64 tensor where reading them would have to wait."""
    if tensor.is_meta or not tensor.numel():  # it has a shape and no numbers
        return _unknown(tensor)
    data = real(tensor.double() if tensor.dtype in _LONG else tensor)
    if (quick := _numbers_if_finite(data)) is not None:
        return quick
    nan, finite = data.isnan(), data.isfinite()
    inf = ~(nan | finite)
    count = finite.sum(dtype=torch.float64)
    low = torch.where(finite, data, torch.inf)
    high = torch.where(finite, data, -torch.inf)
    clean = torch.where(finite, data, 0)
    mean = clean.sum(dtype=torch.float64) / count
    spread = torch.where(finite, clean - mean.to(clean.dtype), 0).square().sum(dtype=torch.float64)
    numbers = [
        torch.full_like(count, data.numel()),
        nan.sum(),
        inf.sum(),
        torch.where(count > 0, low.amin(), torch.nan),
        torch.where(count > 0, high.amax(), torch.nan),
        mean,
        (spread / (count - 1).clamp(min=0)).sqrt(),
        (data == 0).sum() / data.numel(),
    ]
    return torch.stack([number.to(torch.float64) for number in numbers])


def _unknown(tensor: torch.Tensor) -> Sequence[float]:
    """Return the eight numbers of a tensor without numbers."""
    return [tensor.numel(), 0, 0, *[torch.nan] * 5]


def _numbers_if_finite(data: torch.Tensor) -> Sequence[float] | None:
    """Return the eight numbers in a fraction of the time; None if not all elements are finite or reading has to wait."""
    wrapped = data.__class__ not in _OF_TORCH or is_functorch_wrapped_tensor(data)
    if wrapped or not data.is_cpu:
        return None
    low, high = data.aminmax()
    low, high = low.item(), high.item()  # NaN if any element is
    if not math.isfinite(high - low):
        return None
    count = data.numel()
    zeros = (count - data.count_nonzero().item()) / count
    exact = data.double()
    total = exact.sum().item()
    mean = total / count
    squares = (exact.square() if exact is data else exact.square_()).sum().item()
    # The sum of the squared distances from the mean, without a pass for the distances. Where the mean is large beside
    # the std, the difference would lose more than four of its 53 bits: there from the distances themselves.
    spread = squares - total * mean
    if not squares / 16 < spread < math.inf:  # also after an overflow
        spread = torch.linalg.vector_norm(data.to(torch.float64, copy=True).sub_(mean)).item() ** 2
    return [count, 0, 0, low, high, mean, math.sqrt(spread / (count - 1)) if count > 1 else torch.nan, zeros]


def _merged(rows: torch.Tensor) -> torch.Tensor:
    """Return the eight numbers of all tensors together, given one row per tensor."""
    count, nan, inf, low, high, mean, std, zeros = rows.T
    finite = torch.where(mean.isnan(), 0, count - nan - inf)
    total = finite.sum()
    middle = (finite * mean).nansum() / total
    # Sums of squares within and between (Chan, Golub, LeVeque 1979); the std of a single element is NaN.
    spread = ((finite - 1) * std.square()).nansum() + (finite * (mean - middle).square()).nansum()
    numbers = [
        count.sum(),
        nan.sum(),
        inf.sum(),
        torch.where(total > 0, low.where(~low.isnan(), torch.inf).amin(), torch.nan),
        torch.where(total > 0, high.where(~high.isnan(), -torch.inf).amax(), torch.nan),
        middle,
        (spread / (total - 1).clamp(min=0)).sqrt(),
        (zeros * count).nansum() / (count * ~zeros.isnan()).sum(),
    ]
    return torch.stack(numbers)
