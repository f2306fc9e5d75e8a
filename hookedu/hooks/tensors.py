"""Tensors inside nested values, such as the arguments and outputs of modules, and their statistics."""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch


def map_tensors(fn: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """Return the same structure with `fn(tensor)` in the place of each tensor.

    Tuples, named tuples, lists, dicts and dataclasses are traversed, and subclasses keep their type and
    attributes. None, numbers, strings and objects of other classes are passed through without a copy. A further
    container is added to `parts` and `shape_text` as well.
    """
    if isinstance(value, torch.Tensor):
        return fn(value)
    if isinstance(value, tuple):
        items = [map_tensors(fn, item) for item in value]
        make = getattr(value, "_make", None)
        if make is not None:  # a named tuple; _make bypasses the checks of a subclass's __new__
            return make(items)
        return tuple(items) if type(value) is tuple else type(value)(items)  # such as torch.return_types.max
    if isinstance(value, list):
        result = copy.copy(value)
        result[:] = [map_tensors(fn, item) for item in value]
        return result
    if isinstance(value, dict):
        result = copy.copy(value)  # keeps the order, the class and the factory of a defaultdict
        for key, item in value.items():
            result[key] = map_tensors(fn, item)
        return result
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        result = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                item = map_tensors(fn, getattr(value, field.name))
                object.__setattr__(result, field.name, item)  # setattr fails on a frozen dataclass
        return result
    return value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a structure, in the order in which `map_tensors` meets them."""
    found: list[torch.Tensor] = []
    map_tensors(found.append, value)
    return iter(found)


def named_tensors(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a structure with the code that reaches each: `("[1]['out']", tensor)`."""
    if isinstance(value, torch.Tensor):
        yield path, value
    else:
        for key, item in parts(value):
            yield from named_tensors(item, path + (key if isinstance(key, Attribute) else f"[{key!r}]"))


class Attribute(str):
    """The key of a part that is reached as an attribute: ".logits"."""


def parts(value: Any) -> list[tuple[Any, Any]]:
    """Return what a container holds, each item with its key, index or `Attribute`; [] for anything else.

    The containers are those that `map_tensors` goes into: a structure has the same tensors for both. Keys are only
    handed on: somebody else's key may raise when it is printed.
    """
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "_make"):
        names = getattr(value, "_fields", ())
        return [(Attribute(f".{name}"), item) for name, item in zip(names, value, strict=False)]
    if isinstance(value, tuple | list):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return [(Attribute(f".{name}"), getattr(value, name)) for name in names]
    return []


def fresh(value: Any) -> Any:
    """Return the structure with leaf copies of its tensors, for a run that must not touch the originals."""
    return map_tensors(lambda t: t.detach().clone().requires_grad_(t.requires_grad), value)


def shape_of(value: Any) -> Any:
    """Return the structure with `tuple(tensor.shape)` for each tensor: (1, 8, 4, 4) for a single one."""
    return map_tensors(lambda tensor: tuple(tensor.shape), value)


def shape_text(shape: Any) -> str:
    """Return a shape as text: `1×8×4×4`, `scalar`, `(5×2×8, (1×2×8, 1×2×8))`, `{'out': 1×2}`."""
    if isinstance(shape, tuple) and shape and all(type(size) is int for size in shape):
        return "×".join(map(str, shape))
    if shape == ():
        return "scalar"
    if isinstance(shape, (tuple, list)):
        inside = ", ".join(map(shape_text, shape))
        return f"[{inside}]" if isinstance(shape, list) else f"({inside})"
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key!r}: {shape_text(item)}" for key, item in shape.items()) + "}"
    if dataclasses.is_dataclass(shape):
        fields = (f"{f.name}={shape_text(getattr(shape, f.name, None))}" for f in dataclasses.fields(shape))
        return f"{type(shape).__name__}({', '.join(fields)})"
    return "None" if shape is None else type(shape).__name__


def storage_bytes(tensors: Iterator[torch.Tensor]) -> int:
    """Return the memory of tensors in bytes; a storage that several of them share counts once."""
    storages: dict[int, int] = {}
    for tensor in tensors:
        for part in _dense_parts(tensor):
            storage = part.untyped_storage()
            storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())


def _dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors that own the storage: of a sparse tensor its indices and values."""
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


class Stats:
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
        Fraction of elements that are zero, from 0 to 1.
    """

    NUMBERS = ("count", "nan", "inf", "min", "max", "mean", "std", "zeros")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype
        self._numbers = _numbers(tensor.detach())

    def __getattr__(self, name: str) -> float:
        if name not in self.NUMBERS:
            raise AttributeError(name)
        number = self._numbers[self.NUMBERS.index(name)].item()
        return int(number) if name in ("count", "nan", "inf") else number

    def as_dict(self) -> dict[str, Any]:
        """Return all statistics by name, as Python values."""
        return {"shape": self.shape, "dtype": self.dtype} | {
            name: getattr(self, name) for name in self.NUMBERS
        }

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={getattr(self, name):.4g}" for name in self.NUMBERS)
        return f"Stats({shape_text(self.shape)} {str(self.dtype).removeprefix('torch.')}: {text})"


def _numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Return the eight numbers of `Stats` as one float64 tensor, without synchronising."""
    data = real(tensor)
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
        low.amin() if data.numel() else torch.full_like(count, torch.nan),
        high.amax() if data.numel() else torch.full_like(count, torch.nan),
        mean,
        (spread / (count - 1)).sqrt(),
        (data == 0).sum() / max(data.numel(), 1),
    ]
    return torch.stack([number.to(torch.float64) for number in numbers])


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as dense float32 (float64 stays), complex numbers as their absolute values."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = tensor.abs()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)
