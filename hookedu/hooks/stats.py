"""Statistics of a tensor, and of several taken together."""

import contextlib
import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from hookedu.hooks.tensors import Placeholder, real, shape_text, sizes

_OF_TORCH = (torch.Tensor, torch.nn.Parameter)
_LONG = (torch.int32, torch.int64)  # more than the 24 bits of float32
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_SMALL = 2**14  # bytes: below, an operation costs more than its elements
_MOST_WAITING = 2**18  # bytes of copies for which no statistics have been computed yet


class Stats(Placeholder):
    """Summary statistics of one tensor, fetched lazily.

    They stay on the tensor's device until they are read, so that a hook never waits for a GPU. Reading
    one synchronises.

    Parameters
    ----------
    tensor : torch.Tensor
        The tensor, of any shape, dtype and device.
    waiting : Waiting, optional
        Where a small tensor may wait, as a copy, until its statistics are computed together with those of others.

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
    __slots__ = ("_copy", "_found", "dtype", "shape")

    def __init__(self, tensor: torch.Tensor, waiting: "Waiting | None" = None) -> None:
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may refuse to be looked at
            self.shape, self.dtype = sizes(tensor), tensor.dtype
            tensor = tensor.detach() if tensor.requires_grad else tensor
            self._copy: torch.Tensor | None = None
            self._found: Sequence[float] | torch.Tensor = ()
            if waiting is None or not waiting.take(self, tensor):
                self._found = _numbers_or_unknown(tensor)

    @property
    def _numbers(self) -> Sequence[float] | torch.Tensor:
        """The eight numbers, computed now if the tensor still waits."""
        if (waits := self._copy) is not None:
            try:
                self._found, self._copy = _numbers(waits), None
            except Exception:  # in a mode that allows no operation on it: read later, it has its numbers
                return _unknown(waits)
        return self._found

    def __getstate__(self) -> object:
        """Return what a copy or a file gets: numbers, never a tensor that waits."""
        _ = self._numbers
        return super().__getstate__()

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
            result._found = _merged(torch.stack(rows))
        return result

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name):.4g}" for name in self.NUMBERS)
        return f"Stats({shape_text(self.shape)} {str(self.dtype).removeprefix('torch.')}: {numbers})"


class Waiting:
    """Small tensors that wait for their statistics; when there are many, these are computed together."""

    def __init__(self) -> None:
        self._stats: list[Stats] = []
        self._bytes = 0

    def take(self, stats: Stats, tensor: torch.Tensor) -> bool:
        """Let a tensor wait, if it can, and compute all that wait if their copies take much memory.

        Nothing raises in a hook. Where a mode is in force that allows no operation on these tensors, they are not copied,
        or wait on, and are computed alone when they are read.
        """
        if not _can_wait(tensor):
            return False
        try:
            stats._copy = tensor.clone()
        except Exception:
            return False
        self._stats.append(stats)
        self._bytes += stats._copy.nbytes
        if self._bytes > _MOST_WAITING:
            together, self._stats, self._bytes = self._stats, [], 0
            with contextlib.suppress(Exception):
                _compute(together)
        return True

    def clear(self) -> None:
        """Forget those that wait: whoever still holds one computes it alone."""
        self._stats, self._bytes = [], 0


def _can_wait(tensor: torch.Tensor) -> bool:
    """Check whether a tensor is small and ordinary enough for its statistics to be computed with those of others."""
    return (
        tensor.__class__ in _OF_TORCH
        and tensor.is_cpu
        and tensor.dtype in _FLOATS
        and 0 < tensor.numel() * tensor.element_size() <= _SMALL
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and not is_functorch_wrapped_tensor(tensor)
    )


def _compute(stats: Sequence[Stats]) -> None:
    """Compute the statistics of several tensors, those of one size and dtype in one go."""
    groups: dict[tuple[torch.dtype, int], list[tuple[Stats, torch.Tensor]]] = {}
    for one in stats:
        if (waits := one._copy) is not None:  # it may have been read meanwhile
            groups.setdefault((waits.dtype, waits.numel()), []).append((one, waits))
    for group in groups.values():
        data = torch.stack([waits.reshape(-1) for _, waits in group])
        for (one, waits), numbers in zip(group, _rows_if_finite(data), strict=True):
            one._found = numbers or _numbers_or_unknown(waits)
            one._copy = None


def _numbers_or_unknown(tensor: torch.Tensor) -> Sequence[float] | torch.Tensor:
    """Return the eight numbers of any tensor, NaN where they cannot be computed."""
    # Such as float4, which has no operations, or a wrapper of vmap that has left its function.
    try:
        return _numbers(tensor)
    except Exception:
        return _unknown(tensor)


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
    exact = data.double()
    total = exact.sum().item()
    squares = (exact.square() if exact is data else exact.square_()).sum().item()
    return _from_sums(data, low, high, data.count_nonzero().item(), total, squares)


def _rows_if_finite(data: torch.Tensor) -> list[Sequence[float] | None]:
    """Return the same for each row of a matrix."""
    low, high = data.aminmax(dim=1)
    exact = data.double()
    total = exact.sum(dim=1)
    squares = (exact.square() if exact is data else exact.square_()).sum(dim=1)
    figures = (figure.tolist() for figure in (low, high, data.count_nonzero(dim=1), total, squares))
    return [
        _from_sums(row, *one) if math.isfinite(one[1] - one[0]) else None
        for row, *one in zip(data, *figures, strict=True)
    ]


def _from_sums(
    data: torch.Tensor, low: float, high: float, nonzero: float, total: float, squares: float
) -> Sequence[float]:
    """Return the eight numbers, given the smallest and largest element and the sums of elements and squares."""
    count = data.numel()
    mean = total / count
    # The sum of the squared distances from the mean, without a pass for the distances. Where the mean is large beside
    # the std, the difference would lose more than four of its 53 bits: there from the distances themselves.
    spread = squares - total * mean
    if not squares / 16 < spread < math.inf:  # also after an overflow
        spread = torch.linalg.vector_norm(data.to(torch.float64, copy=True).sub_(mean)).item() ** 2
    std = math.sqrt(spread / (count - 1)) if count > 1 else torch.nan
    return [count, 0, 0, low, high, mean, std, (count - nonzero) / count]


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
