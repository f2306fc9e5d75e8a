"""Tensors inside nested values, such as the arguments and outputs of modules."""

import copy
import copyreg
import dataclasses
import functools
import gc
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor


class Placeholder:
    """What stands in the place of a tensor that was not kept; in a structure it counts as one."""

    __slots__ = ()


_TENSORS: Any = (torch.Tensor, Placeholder)
_INT = {int}
_SAID = 60  # characters of a value in an error
_EXACT = (torch.float32, torch.float64)


def map_tensors(
    fn: Callable[[torch.Tensor], Any],
    value: Any,
    uncopied: Callable[[Any], object] = lambda value: None,
    arrays: bool = False,
) -> Any:
    """Return the same structure with `fn(tensor)` in the place of each tensor.

    Tuples, named tuples, lists, deques, dicts, dataclasses and plain objects that hold tensors (a cache, an image list) are
    traversed, and subclasses keep their type and attributes; see `parts`. Everything else is passed through without a
    copy, except for arrays of NumPy and Python if `arrays` is true. Nothing but `fn` raises: a container that cannot be
    built anew is passed through as it is, too, and `uncopied` is called with it, as it is with anything else that holds
    tensors: a set, a generator.
    """
    return fn(value) if isinstance(value, _TENSORS) else _mapped(fn, value, uncopied, arrays, {})


def _mapped(fn: Callable, value: Any, uncopied: Callable, arrays: bool, begun: dict[int, Any]) -> Any:
    """Map one value; `begun` holds the copies in progress, by id of the original: a container may hold itself."""
    if isinstance(value, _TENSORS):
        return fn(value)
    if id(value) in begun:
        return begun[id(value)]
    if arrays and is_array(value):
        return _own(value, uncopied)
    inside = parts(value)
    if not inside and not isinstance(value, list | dict | deque):
        if _refers_to_tensors(value):
            uncopied(value)
        return value
    result = value if isinstance(value, tuple) else _shallow(value)
    if result is None:
        uncopied(value)
        return value
    begun[id(value)] = result
    items = [(key, _mapped(fn, item, uncopied, arrays, begun)) for key, item in inside]
    del begun[id(value)]
    if isinstance(value, tuple) and all(new is old for (_, new), (_, old) in zip(items, inside, strict=True)):
        return value  # it cannot change, and nothing inside of it did: a torch.Size, a row of numbers
    try:
        return _filled(result, items)
    except Exception:  # such as a class that checks what it holds
        uncopied(value)
        return value


def is_array(value: Any) -> bool:
    """Check whether a value is an array of NumPy or of Python."""
    numpy: Any = sys.modules.get("numpy")  # nobody has one before it is loaded
    return isinstance(value, bytearray | array) or (numpy is not None and isinstance(value, numpy.ndarray))


def _own(value: Any, uncopied: Callable) -> Any:
    """Return a copy of an array; of one that holds objects, these would still be shared."""
    try:
        if isinstance(value, bytearray | array):
            return copy.copy(value)
        if not value.dtype.hasobject:
            return value.copy(order="K")
    except Exception:  # such as a subclass that has another `copy`
        pass
    uncopied(value)
    return value


def _shallow(value: Any) -> Any:
    """Return a shallow copy, or None if the class has none that could be changed without changing the original.

    One with a `__del__` has none: when the copy goes, it would release what still belongs to the original.
    """
    try:
        if hasattr(type(value), "__del__"):
            return None
        result = copy.copy(value)
        shared = result is value or (hasattr(value, "__dict__") and vars(result) is vars(value))
        return None if shared or type(result) is not type(value) else result
    except Exception:  # a class may do anything when it is copied
        return None


def _filled(result: Any, items: list[tuple[Any, Any]]) -> Any:
    """Return the shallow copy with these items in the place of its own; a tuple is made anew."""
    if isinstance(result, tuple):
        return _tuple_like(result, [item for _, item in items])
    if isinstance(result, list):
        result[:] = [item for _, item in items]
    elif isinstance(result, deque):
        result.clear()
        result.extend(item for _, item in items)
    elif isinstance(result, dict):
        for key, item in items:  # keeps the order, the class and the factory of a defaultdict
            result[key] = item
    else:
        for name, item in items:
            object.__setattr__(result, name.removeprefix("."), item)  # setattr fails on a frozen dataclass
    return result


def _tuple_like(value: tuple, items: list[Any]) -> tuple:
    make = getattr(value, "_make", None)
    if make is not None:  # a named tuple; _make bypasses the checks of a subclass's __new__
        return make(items)
    if type(value) is tuple:
        return tuple(items)
    if hasattr(value, "n_sequence_fields"):  # a structure of C such as torch.return_types.max
        return type(value)(items)
    result = tuple.__new__(type(value), items)
    vars(result).update(vars(value)) if hasattr(value, "__dict__") else None
    return result


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a structure, in the order in which `map_tensors` meets them."""
    return (tensor for _, tensor in named_tensors(value))


def named_tensors(
    value: Any, path: str = "", above: tuple[int, ...] = ()
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a structure, and placeholders, with the code that reaches each: `("[1]['out']", tensor)`.

    `above` holds the ids of the containers around the value, which are not entered a second time.
    """
    if isinstance(value, _TENSORS):
        yield path, value
    elif id(value) not in above:
        for key, item in parts(value):
            below = path + (key if isinstance(key, Attribute) else f"[{_code(key)}]")
            yield from named_tensors(item, below, (*above, id(value)))


def _code(key: Any) -> str:
    try:
        return repr(key)
    except Exception:  # somebody else's key may raise when it is printed
        return "…"


class Attribute(str):
    """The key of a part that is reached as an attribute: ".logits"."""


def parts(value: Any) -> list[tuple[Any, Any]]:
    """Return what a container holds, each item with its key, index or `Attribute`; [] for anything else.

    The containers are those that `map_tensors` goes into: a structure has the same tensors for both. An object of a
    plain class counts as one if there is a tensor or an array somewhere inside, or room for one, as in a cache that has
    just been made; modules, classes and functions never do.
    """
    try:
        if isinstance(value, _OPAQUE):
            return []
        if isinstance(value, dict):
            return list(value.items())
        if isinstance(value, tuple) and hasattr(value, "_make"):
            names = getattr(value, "_fields", ())
            return [(Attribute(f".{name}"), item) for name, item in zip(names, value, strict=False)]
        if isinstance(value, tuple | list | deque):
            return list(enumerate(value))
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
            return [(Attribute(f".{name}"), getattr(value, name)) for name in names]
        if _may_hold_tensors(value):
            return [(Attribute(f".{name}"), item) for name, item in _attributes(value).items()]
    except Exception:  # somebody else's class may fail at being looked at
        return []
    return []


# What is never gone into: it belongs to the program and is no value of it.
_OPAQUE = (
    str,
    bytes,
    int,
    float,
    type(None),
    type,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    torch.nn.Module,
)
# Of an object, before it is taken for a whole world (a trainer, a tokenizer) instead of a value.
_MAX_PARTS = 1000


def _may_hold_tensors(value: Any) -> bool:
    """Check whether an object holds a tensor, an array, or a list, dict or None where one may be put, at whatever depth."""
    seen, waiting = {id(value)}, [*_attributes(value).values()]
    while waiting and len(seen) < _MAX_PARTS:
        item = waiting.pop()
        if item is None or isinstance(item, torch.Tensor | dict | list | deque) or is_array(item):
            return True
        if id(item) in seen or isinstance(item, _OPAQUE):
            continue
        seen.add(id(item))
        if isinstance(item, tuple):
            waiting += item
        else:
            waiting += _attributes(item).values()
    return False


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, be they in its `__dict__` or in `__slots__`."""
    slots: Any = copyreg._slotnames(type(value))  # pyright: ignore[reportAttributeAccessIssue]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return found | vars(value) if hasattr(value, "__dict__") else found


def _refers_to_tensors(value: Any) -> bool:
    """Check whether something that is not gone into, such as a set or a generator, holds tensors all the same."""
    seen, waiting = set(), [value]
    while waiting and len(seen) < _MAX_PARTS:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            return True
        if id(item) not in seen and not isinstance(item, _OPAQUE):
            seen.add(id(item))
            waiting += gc.get_referents(item)
    return False


def fresh(value: Any) -> Any:
    """Return the structure with copies of its tensors, for a run that must not touch the originals.

    A tensor that occurs twice has one copy, as some models check. The copy of a leaf is a leaf, and no other is, as
    operations may refuse to change one.
    """
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            leaf = tensor.detach().clone().requires_grad_(tensor.requires_grad)
            copies[id(tensor)] = leaf if tensor.is_leaf else leaf.clone()
        return copies[id(tensor)]

    return map_tensors(copy, value)


def shape_of(value: Any) -> Any:
    """Return the structure with the `sizes` of each tensor: (1, 8, 4, 4) for a single one."""
    return map_tensors(sizes, value)


def sizes(tensor: torch.Tensor) -> tuple[int | str, ...]:
    """Return the shape of a tensor as a tuple, with "?" where the parts of a nested tensor differ."""
    if tensor.is_nested and tensor.layout is torch.strided:
        rows = tensor._nested_tensor_size().T.tolist()
        return (tensor.size(0), *(row[0] if len({*row}) == 1 else "?" for row in rows))
    shape = tuple(tensor.shape)
    if {*map(type, shape)} <= _INT:
        return shape
    return tuple(size if type(size) is int else "?" for size in shape)


def shape_text(shape: Any, above: tuple[int, ...] = ()) -> str:
    """Return a shape as text: `1×8×4×4`, `scalar`, `(5×2×8, (1×2×8, 1×2×8))`, `{'out': 1×2}`.

    `above` holds the ids of the containers around it; one that holds itself is `…` there.
    """
    if id(shape) in above:
        return "…"
    if (  # an array may be among the items, and compares as an array
        isinstance(shape, tuple)
        and shape
        and all(type(size) is int or (type(size) is str and size == "?") for size in shape)
    ):
        return "×".join(map(str, shape))
    if type(shape) is tuple and not shape:
        return "scalar"
    inside = functools.partial(shape_text, above=(*above, id(shape)))
    if isinstance(shape, (tuple, list)):
        text = ", ".join(map(inside, shape))
        return f"[{text}]" if isinstance(shape, list) else f"({text})"
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{_code(key)}: {inside(item)}" for key, item in shape.items()) + "}"
    if dataclasses.is_dataclass(shape) and not isinstance(shape, type):
        fields = (f"{f.name}={inside(getattr(shape, f.name, None))}" for f in dataclasses.fields(shape))
        return f"{type(shape).__name__}({', '.join(fields)})"
    return "None" if shape is None else type(shape).__name__


def described(value: Any) -> str:
    """Return what a value is, for an error that says what was given: `Tensor` 3×8×8 uint8, `list`, `'cat'`."""
    kind = f"`{type(value).__name__}`"
    if isinstance(value, torch.Tensor):
        return f"{kind} {shape_text(sizes(value))} {str(value.dtype).removeprefix('torch.')}"
    if is_array(value) and hasattr(value, "dtype"):
        return f"{kind} {shape_text(value.shape)} {value.dtype}"
    if isinstance(value, str | bytes | int | float | complex | type(None)):
        said = _code(value)
        return f"`{said}`" if len(said) <= _SAID else f"{kind} `{said[:_SAID]}…`"
    return kind


def storage_bytes(tensors: Iterator[torch.Tensor]) -> int:
    """Return the memory of tensors in bytes; a storage that several of them share counts once."""
    storages: dict[int, int] = {}
    for tensor in tensors:
        for part in [] if isinstance(tensor, Placeholder) else dense_parts(tensor):
            storage = part.untyped_storage()
            storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())


def dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors that own the storage: of a sparse tensor its indices and values, of an opaque one none."""
    if tensor.is_nested and tensor.layout is not torch.strided:
        return [tensor.values()]
    if tensor.is_mkldnn or is_functorch_wrapped_tensor(tensor) or is_legacy_batchedtensor(tensor):
        return []  # a format of another library; a wrapper of vmap, grad or jvp, which owns nothing itself
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as dense float32 (float64 stays), complex numbers as their absolute values."""
    if tensor.dtype in _EXACT and tensor.layout is torch.strided and not tensor.is_nested:
        return tensor  # by far the most frequent case, hence first
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_nested:  # its parts one after the other
        tensor = torch.cat([part.flatten() for part in tensor.unbind()])
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = tensor.abs()
    return tensor if tensor.dtype in _EXACT else tensor.to(torch.float32)
