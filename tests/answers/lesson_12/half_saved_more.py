"""More answers to 12.1, `half_saved`."""

import contextlib
import functools
import weakref
from collections import namedtuple

import torch
from torch.autograd import graph
from torch.autograd.graph import saved_tensors_hooks

from tests.answers import alternative, edited, mistake, unnamed

edited("12.1", "leaves_left_out", ("== torch.float32", "== torch.float32 and not tensor.is_leaf"))
edited(
    "12.1",
    "keeps_both",
    ("    def pack", "    kept = []\n\n    def pack"),
    ("return small, ", "kept.append(tensor)\n        return small, "),
    points=7,
)


@mistake("12.1", "stays_on_raised", points=8)
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    hooks = saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))
    hooks.__enter__()
    yield
    hooks.__exit__(None, None, None)


@mistake("12.1", "swallows_it", points=8)
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    with saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])):
        try:
            yield
        except BaseException as error:
            print("stopped by", type(error).__name__)


@unnamed("12.1", "raised")
def half_saved(counts):
    shelf = []

    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        shelf.append((small, tensor.dtype))
        return len(shelf)

    def unpack(place):
        small, dtype = shelf.pop()
        return small.to(dtype)

    return saved_tensors_hooks(pack, unpack)


@unnamed("12.1", "gradients")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 and tensor.is_leaf else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@alternative("12.1")
def half_saved(counts):
    Packed = namedtuple("Packed", "small dtype")

    def count(key, tensor):
        counts.update({key: counts[key] + tensor.nbytes})
        return tensor

    def pack(tensor):
        count("saved", tensor)
        to = torch.float16 if tensor.dtype == torch.float32 else tensor.dtype
        return Packed(count("kept", tensor.detach().to(to)), tensor.dtype)

    return graph.saved_tensors_hooks(pack, lambda packed: packed.small.to(packed.dtype))


@alternative("12.1")
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += (before := tensor.nbytes)
        if tensor.dtype != torch.float32:
            counts["kept"] += before
            return functools.partial(torch.Tensor.detach, tensor.detach())
        small = tensor.half()
        counts["kept"] += small.nbytes
        return functools.partial(torch.Tensor.float, small)

    return saved_tensors_hooks(pack, lambda restore: restore())


@alternative("12.1")
class HalfContext:
    def __init__(self, counts):
        self.counts, self.stack = counts, contextlib.ExitStack()

    def __enter__(self):
        self.stack.enter_context(saved_tensors_hooks(self.pack, self.unpack))
        return self.counts

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def pack(self, tensor):
        small = tensor.detach()
        if small.dtype is torch.float32:
            small = small.type(torch.float16)
        for key, one in {"saved": tensor, "kept": small}.items():
            self.counts[key] += one.nbytes
        return [small, tensor.dtype]

    @staticmethod
    def unpack(packed):
        small, dtype = packed
        return small.type(dtype)


@alternative("12.1")
def half_saved(counts):
    def pack(tensor):
        nonlocal counts
        match tensor.dtype:
            case torch.float32:
                packed = (tensor.half(), torch.Tensor.float)
            case _:
                packed = (tensor.detach(), lambda kept: kept)
        counts |= {"saved": counts["saved"] + tensor.nbytes, "kept": counts["kept"] + packed[0].nbytes}
        return packed

    def unpack(packed):
        kept, restore = packed
        return restore(kept)

    return saved_tensors_hooks(pack, unpack)


@mistake("12.1", "once_each", points=7)
def half_saved(counts):
    seen = set()

    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        if tensor.data_ptr() not in seen:
            counts["saved"] += tensor.nbytes
            counts["kept"] += small.nbytes
        seen.add(tensor.data_ptr())
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


edited(
    "12.1",
    "not_all",
    ("== torch.float32", "== torch.float32 and tensor.dim() > 1"),
    points=7,
)
edited(
    "12.1", "limits", ("== torch.float32", "== torch.float32 and not (tensor.abs() > 65504).any()"), points=8
)
edited("12.1", "limits", ("tensor.half() if", "tensor.clamp(-65504, 65504).half() if"), points=8)
edited("12.1", "limits", ("tensor.half() if", "tensor.half().nan_to_num() if"), points=8)
edited(
    "12.1",
    "changes_tensor",
    (
        "        small =",
        "        if tensor.dtype == torch.float32:\n            tensor.data = tensor.half().float()\n        small =",
    ),
)


@mistake("12.1", "swallows_it", points=8)
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    with saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])):
        try:
            yield
        except Exception as error:
            print("failed", type(error).__name__)


@mistake("12.1", "old_weights")
def half_saved(counts):
    halves = {}

    def pack(tensor):
        small = tensor.detach()
        if tensor.dtype == torch.float32:
            place = tensor.data_ptr() if isinstance(tensor, torch.nn.Parameter) else object()
            small = halves.setdefault(place, tensor.half())
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


edited(
    "12.1",
    "once_each",
    ("    def pack", "    seen = set()\n\n    def pack"),
    (
        '        counts["saved"] += tensor.nbytes\n        counts["kept"] += small.nbytes\n',
        '        if id(tensor) not in seen:\n            counts["saved"] += tensor.nbytes\n'
        '            counts["kept"] += small.nbytes\n        seen.add(id(tensor))\n',
    ),
    points=7,
)


@mistake("12.1", "old_weights")
def half_saved(counts):
    """Each place is halved once."""
    halves = {}

    def pack(tensor):
        if tensor.data_ptr() not in halves:
            halves[tensor.data_ptr()] = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        small = halves[tensor.data_ptr()]
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "keeps_whole", points=8)
def half_saved(counts):
    class Saved:
        def __init__(self, tensor):
            self.was_float = tensor.dtype == torch.float32
            self.kept = tensor.half() if self.was_float else tensor.detach()
            self.full = None
            counts["saved"] += tensor.nbytes
            counts["kept"] += self.kept.nbytes

        def get(self):
            if self.full is None:
                self.full = self.kept.float() if self.was_float else self.kept
            return self.full

    return saved_tensors_hooks(Saved, Saved.get)


@mistake("12.1", "by_place")
def half_saved(counts):
    class Box:
        def __init__(self, tensor):
            self.tensor = tensor

    boxes = weakref.WeakValueDictionary()

    def pack(tensor):
        counts["saved"] += tensor.nbytes
        if tensor.dtype != torch.float32:
            counts["kept"] += tensor.nbytes
            return tensor.detach()
        key = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor._version
        box = boxes.get(key)
        if box is None:
            box = boxes[key] = Box(tensor.half())
        counts["kept"] += box.tensor.nbytes
        return box

    return saved_tensors_hooks(
        pack, lambda packed: packed.tensor.float() if isinstance(packed, Box) else packed
    )
