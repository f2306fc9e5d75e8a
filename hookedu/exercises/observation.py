"""Serialise observations for the way from the learner's process to the judge: JSON of plain values, never pickle.

`encode` runs in the same process as untrusted code. `decode` runs in the trusted process and validates everything
against the schema and the limits below before a judge reads it. A value that has no plain form is transmitted as
the name of its type, which is all that a message needs ("expected a handle, got function").
"""

import json
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

MAX_BYTES = 2**20  # JSON of the observations of one exercise, over all its cases
MAX_DEPTH = 12  # levels of nesting
MAX_ELEMENTS = 4096  # elements of one tensor, items of one container
MAX_RANK = 8  # dimensions of one tensor
MAX_TEXT = 2000  # characters of one string

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    )
}


class ObservationError(ValueError):
    """Raised for data that violates the schema or the limits of observations."""


@dataclass(frozen=True)
class Opaque:
    """Placeholder for a value without a plain form, of which only the type's name was transmitted."""

    type: str

    def __str__(self) -> str:
        # The lessons call a RemovableHandle a handle.
        return "<handle>" if self.type == "RemovableHandle" else f"<{self.type}>"


class Tuple(list):
    """A tuple that was observed. It prints as one, and equals any list or observed tuple of the same items.

    An answer may use either, unless its exercise asks for one; then the check asks `is_tuple`.
    """

    def __repr__(self) -> str:
        return repr(tuple(self))


def is_tuple(value: Any) -> bool:
    """Check whether a value is a tuple, observed or not; a named one is another type."""
    return type(value) is tuple or type(value) is Tuple


def encode(value: Any, depth: int = 0) -> Any:
    """Return a value in a form that JSON can represent and `decode` accepts, whatever the value is.

    Built-in types are matched exactly, because a subclass may lie about what it contains.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, list, tuple, dict or tensor, nested in any way. Anything else is allowed too.
    depth : int, default 0
        Current level of nesting; set by the recursion.

    Returns
    -------
    object
        - None, bool, finite float, and int of at most 64 bits: unchanged;
        - NaN and infinities: ``{"float": "nan"}``;
        - str: its first `MAX_TEXT` characters;
        - list of at most `MAX_ELEMENTS` items: a list of the encoded items;
        - tuple of as many: ``{"tuple": [item, ...]}``;
        - dict of as many: ``{"dict": [[key, value], ...]}``, so that keys need not be strings;
        - tensor of at most `MAX_ELEMENTS` elements: ``{"dtype": ..., "shape": ..., "values": ...}``, detached
          and copied to the CPU, with non-finite values as strings;
        - anything else, what is larger or nested deeper included: ``{"type": description}``.
    """
    kind = type(value)  # compared by identity: its metaclass may define what is equal to it
    if value is None or kind is bool or kind is int or kind is float:
        return _encode_plain(value)
    if kind is str:
        return value[:MAX_TEXT]
    if kind is list or kind is tuple or kind is dict:
        # Observations are sent as a list, one item per case, hence one level less than `decode` accepts.
        if len(value) > MAX_ELEMENTS or depth >= MAX_DEPTH - 1:
            return {"type": f"{kind.__name__} of {len(value)}"}
        if kind is dict:
            return {"dict": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]}
        items = [encode(v, depth + 1) for v in value]
        return {"tuple": items} if kind is tuple else items
    if issubclass(kind, torch.Tensor):  # isinstance would ask the value's own __class__
        try:
            encoded = _encode_tensor(value)
            if kind not in (torch.Tensor, torch.nn.Parameter):  # its methods may return anything
                decode(json.loads(json.dumps(encoded)))
            return encoded
        except Exception:  # one without values: sparse, on the device "meta", of a class of the learner's
            return {"type": type_name(value)}
    return {"type": type_name(value)}


def type_name(value: Any) -> str:
    """Return the name of a value's type, also if its metaclass claims another; of an observed tuple, "tuple"."""
    return "tuple" if type(value) is Tuple else type.__dict__["__name__"].__get__(type(value))[:MAX_TEXT]


def _encode_plain(value: float | None) -> Any:
    if type(value) is int and value.bit_length() > 64:
        return {"type": "int"}
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no NaN and no infinity
    return value


def _encode_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    name, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
    if name not in _DTYPES or not _fits(shape):
        return {"type": f"Tensor of {name}, {tuple(shape)}"[:MAX_TEXT]}
    values = tensor.detach().to("cpu").reshape(-1).tolist()
    # JSON has no NaN or infinity: they are written as strings, which float() reads back.
    values = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in values]
    return {"dtype": name, "shape": shape, "values": values}


def _fits(shape: list[int]) -> bool:
    """Check that a tensor is small, also as nested lists: a dimension of 0 does not make the others small."""
    return len(shape) <= MAX_RANK and math.prod(max(1, n) for n in shape) <= MAX_ELEMENTS


def dumps(record: dict[str, Any]) -> str:
    """Serialise a record of encoded values as one line of JSON; ValueError for a non-finite float."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=lambda v: {"type": type_name(v)})


def alike(one: Any, other: Any) -> bool:
    """Check whether two encoded values are equal but for the rounding of floats.

    Two calls of one answer may add the same numbers in another order: that of a set of parameters differs from call to
    call. Floats may differ by 1e-5 of their size, and by 1e-6 at least: differences of float32 numbers of size 10 do.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-6)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return one == other


def loads(text: str | bytes) -> dict[str, Any]:
    """Parse one line of JSON; ObservationError if it is too long, malformed or not an object."""
    if len(text) > MAX_BYTES:
        raise ObservationError(f"{len(text)} bytes of observations, at most {MAX_BYTES} are read")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ObservationError(f"not JSON: {error}") from None
    if type(record) is not dict:
        raise ObservationError("not a JSON object")
    return record


def decode(value: Any, depth: int = 0) -> Any:
    """Validate an encoded value and return what it stands for: the inverse of `encode`.

    Parameters
    ----------
    value : object
        Parsed JSON, possibly from an untrusted process.
    depth : int, default 0
        Current level of nesting; set by the recursion.

    Returns
    -------
    object
        None, bool, int, float, str, list, dict, CPU tensor, or `Opaque` for a value of which only the type's name
        was transmitted. Tuples come back as `Tuple`, or as themselves where they are keys of a dict; keys that are
        neither plain values nor tuples nor `Opaque` come back as strings.

    Raises
    ------
    ObservationError
        If the value does not follow the schema or exceeds a limit of this module.
    """
    if depth > MAX_DEPTH:
        raise ObservationError(f"nested deeper than {MAX_DEPTH}")
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str and len(value) <= MAX_TEXT:
        return value
    if type(value) is list:
        return [decode(v, depth + 1) for v in value]
    if type(value) is dict:
        if value.keys() == {"type"} and type(value["type"]) is str:
            return Opaque(value["type"][:MAX_TEXT])
        if value.keys() == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        if value.keys() == {"tuple"} and type(value["tuple"]) is list:
            return Tuple(decode(v, depth + 1) for v in value["tuple"])
        if value.keys() == {"dict"} and type(value["dict"]) is list:
            return _decode_dict(value["dict"], depth)
        if value.keys() == {"dtype", "shape", "values"}:
            return _decode_tensor(value)
    raise ObservationError(f"no observation has this form: {str(value)[:80]}")


def _decode_dict(pairs: list[Any], depth: int) -> dict[Any, Any]:
    decoded = {}
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2:
            raise ObservationError("a dict must be a list of pairs")
        decoded[_as_key(decode(pair[0], depth + 1))] = decode(pair[1], depth + 1)
    return decoded


def _as_key(value: Any) -> Any:
    if type(value) is Tuple:
        return tuple(map(_as_key, value))
    return value if type(value) in (str, int, float, bool, type(None), Opaque) else str(value)


def _decode_tensor(value: dict[str, Any]) -> torch.Tensor:
    dtype, shape, values = value["dtype"], value["shape"], value["values"]
    if type(dtype) is not str or dtype not in _DTYPES:
        raise ObservationError("unknown dtype")
    if type(shape) is not list or not all(type(n) is int and n >= 0 for n in shape) or not _fits(shape):
        raise ObservationError("not a shape")
    if type(values) is not list or len(values) != math.prod(shape):
        raise ObservationError("a tensor's shape and number of values differ")
    try:
        numbers = [float(v) if type(v) is str else v for v in values]
        if not all(type(v) in (int, float, bool) for v in numbers):
            raise ObservationError("a tensor holds numbers only")
        return torch.tensor(numbers, dtype=_DTYPES[dtype], device="cpu").reshape(shape)
    except (ValueError, RuntimeError, OverflowError) as error:
        raise ObservationError(f"not a tensor: {error}") from None


def show(value: Any) -> str:
    """Format a decoded value for a message: on one line, truncated, tensors as nested lists."""
    if isinstance(value, torch.Tensor):
        return _show_numbers(value.tolist())
    if isinstance(value, dict):
        return "{" + ", ".join(_first(value.items(), lambda item: f"{show(item[0])}: {show(item[1])}")) + "}"
    if isinstance(value, list) or is_tuple(value):
        return bracketed(_first(value, show), value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def bracketed(items: Iterable[str], value: Any) -> str:
    """Write items as Python writes a tuple or a list, as `value` is one."""
    inside = [*items]
    if is_tuple(value):
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    return f"[{', '.join(inside)}]"


def _first(items: Collection[Any], write: Callable[[Any], str]) -> list[str]:
    """Write the first 8 items, and whether there are more."""
    return [*map(write, islice(items, 8))] + ["…"] * (len(items) > 8)


def show_kind(value: Any) -> str:
    """Format a value as `show` does, with the types of values without a plain form as words: "function"."""
    return show(value).replace("<", "").replace(">", "")


def show_sequence(value: Any) -> str:
    """Format a value as `show` does, and name a list or tuple as such: one of the right numbers prints like a tensor."""
    return f"{show(value)} ({type_name(value)})" if isinstance(value, list) else show(value)


def _show_numbers(value: Any) -> str:
    if isinstance(value, list):
        return bracketed(_first(value, _show_numbers), value)
    return f"{value:g}" if isinstance(value, float) else str(value)
