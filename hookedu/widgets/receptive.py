"""Receptive fields: which part of the input picture a position of a feature map is computed from.

A mode of the dispatcher sees every operation of a forward pass, also those that no module stands for, such as the addition
of a residual block. From the sizes, strides and paddings of convolutions and pools it computes the field of each tensor
from those of its inputs. Normalisation counts as an operation on single positions, although its statistics depend on all.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

_Pair = tuple[int, int]


@dataclass(frozen=True)
class Field:
    """The part of the input that position (0, 0) is computed from, in rows and columns, and how far the next one is.

    `start` is negative where the field begins in the padding.
    """

    start: _Pair = (0, 0)
    size: _Pair = (1, 1)
    stride: _Pair = (1, 1)

    def window(self, kernel: _Pair, stride: _Pair, padding: _Pair, dilation: _Pair = (1, 1)) -> "Field":
        """Return the field of what a convolution or a pool computes from this."""
        return Field(
            _pair(s - p * step for s, p, step in zip(self.start, padding, self.stride, strict=True)),
            _pair(
                size + d * (k - 1) * step
                for size, d, k, step in zip(self.size, dilation, kernel, self.stride, strict=True)
            ),
            _pair(step * s for step, s in zip(self.stride, stride, strict=True)),
        )

    def union(self, other: "Field") -> "Field | None":
        """Return the smallest field around both, or None if they drift apart from one position to the next."""
        if self.stride != other.stride:
            return None
        start = _pair(map(min, self.start, other.start))
        ends = (
            max(s + size, o + of)
            for s, size, o, of in zip(self.start, self.size, other.start, other.size, strict=True)
        )
        return Field(start, _pair(end - first for end, first in zip(ends, start, strict=True)), self.stride)


def _pair(values: Iterable[int]) -> _Pair:
    first, second = values
    return first, second


# Operations other than those of single numbers that leave each position where it is.
_IN_PLACE = {"clone", "_to_copy", "detach", "alias", "contiguous", "copy", "expand", "view", "_unsafe_view"}
_IN_PLACE |= {
    "slice",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "unsqueeze",
    "cat",
    "stack",
    "native_dropout",
}
_IN_PLACE |= {"_softmax", "_log_softmax", "cumsum"}


class Fields(TorchDispatchMode):
    """Mode under which the receptive field of every tensor is known that is computed from pictures, as far as it can be.

    Parameters
    ----------
    pictures : iterable of torch.Tensor
        The inputs, of shape (..., H, W).
    """

    def __init__(self, pictures: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._fields = WeakTensorKeyDictionary()  # tensor -> Field or None
        for picture in pictures:
            self._fields[picture] = Field()

    def of(self, tensor: torch.Tensor) -> Field | None:
        """Return the field of a tensor, None if it is not known."""
        return self._fields.get(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        # The field of an unusual operation is a help, and must stop no model.
        with contextlib.suppress(Exception):
            self._note(func, args, output)
        return output

    def _note(self, func: Any, args: Any, output: Any) -> None:
        """Note the field of each output; None for what is computed from a picture in an unknown way."""
        inputs = [one for arg in args for one in (arg if isinstance(arg, list | tuple) else [arg])]
        if func._schema.name == "aten::copy_":
            inputs = inputs[1:2]  # what the first held before is gone
        inputs = [one for one in inputs if isinstance(one, torch.Tensor) and one in self._fields]
        outputs = [one for one in (output if isinstance(output, list | tuple) else [output])]
        outputs = [one for one in outputs if isinstance(one, torch.Tensor)]
        if not inputs:
            for one in outputs:
                self._fields.pop(one, None)  # overwritten
            return
        field = None
        # Of an unusual operation the field is not known; it must stop no model.
        with contextlib.suppress(Exception):
            if all(self._fields[one] is not None for one in inputs):
                field = self._after(func, args, inputs, outputs[0])
        for one in outputs:
            known = one.dim() > 1 and one.shape[-2:] == outputs[0].shape[-2:]
            self._fields[one] = field if known else None

    def _after(self, func: Any, args: Any, inputs: list[torch.Tensor], output: torch.Tensor) -> Field | None:
        """Return the field of what an operation computed, None if it is not known."""
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        before = self._fields[inputs[0]]
        sizes, after = _pair(inputs[0].shape[-2:]), _pair(output.shape[-2:])
        if name == "convolution":
            _, weight, _, stride, padding, dilation, transposed = args[:7]
            known = not transposed and len(stride) == 2 and args[0] is inputs[0]
            return (
                before.window(_pair(weight.shape[-2:]), *map(_pair, (stride, padding, dilation)))
                if known
                else None
            )
        if name in ("max_pool2d_with_indices", "max_pool2d", "avg_pool2d"):
            given = [_both(arg) for arg in args[1:5]]
            kernel, stride, padding = (
                given[0],
                (given[1:2] or [()])[0] or given[0],
                (given[2:3] or [(0, 0)])[0],
            )
            dilation = given[3] if len(given) > 3 and name.startswith("max") else (1, 1)
            return before.window(kernel, stride, padding, dilation)
        if name in ("_adaptive_avg_pool2d", "adaptive_max_pool2d", "mean", "amax"):
            whole = name in ("_adaptive_avg_pool2d", "adaptive_max_pool2d") or output.dim() == inputs[0].dim()
            if not whole or any(size % to for size, to in zip(sizes, after, strict=True)):
                return None
            kernel = _pair(size // to for size, to in zip(sizes, after, strict=True))
            return before.window(kernel, kernel, (0, 0))
        if name.endswith("pad") or name == "constant_pad_nd":
            left, _, top, *_ = (*args[1], 0, 0)
            return before.window((1, 1), (1, 1), (top, left))
        same = torch.Tag.pointwise in func.tags or name in _IN_PLACE or "norm" in name
        if not same or after != max(_pair(one.shape[-2:]) for one in inputs):
            return None
        field: Field | None = before
        for other in inputs[1:]:
            field = field and field.union(_spread(self._fields[other], other, field, after))
        return field


def _spread(field: Field, tensor: torch.Tensor, beside: Field, sizes: _Pair) -> Field:
    """Return the field of one value that is used at every position, such as a weight for each channel."""
    if _pair(tensor.shape[-2:]) == (1, 1) != sizes:
        return Field(field.start, field.size, beside.stride)
    return field


def _both(size: Any) -> Any:
    """Return the size of a window as a pair; () if none was given."""
    if isinstance(size, int):
        return size, size
    return tuple(size) * 2 if len(size) == 1 else tuple(size)
