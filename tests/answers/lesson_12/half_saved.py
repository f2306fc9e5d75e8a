"""Answers to 12.1, `half_saved`."""

import contextlib

import torch
from torch.autograd.graph import saved_tensors_hooks

from tests.answers import alternative, mistake


@alternative("12.1")
class HalfSaved(saved_tensors_hooks):
    def __init__(self, counts):
        super().__init__(self.pack, self.unpack)
        self.counts = counts

    def pack(self, tensor):
        self.counts["saved"] += tensor.element_size() * tensor.numel()
        is_float = tensor.dtype is torch.float32
        packed = tensor.to(torch.float16) if is_float else tensor.detach()
        self.counts["kept"] += packed.element_size() * packed.numel()
        return is_float, packed

    def unpack(self, packed):
        is_float, tensor = packed
        return tensor.float() if is_float else tensor


@alternative("12.1")
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        halved = tensor.dtype == torch.float32
        kept = tensor.half() if halved else tensor.detach()
        counts["kept"] += kept.nbytes
        return {"tensor": kept, "halved": halved}

    def unpack(kept):
        return kept["tensor"].float() if kept["halved"] else kept["tensor"]

    with saved_tensors_hooks(pack, unpack):
        yield


@mistake("12.1", "unchanged")
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return tensor.detach()

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "unchanged")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return tensor.detach()

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "all_halved")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "all_halved")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.is_floating_point() else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "not_back")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "not_back")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small

    return saved_tensors_hooks(pack, lambda packed: packed.float())


@mistake("12.1", "no_return")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "no_return")
def half_saved(counts):
    def pack(tensor):
        return tensor.half(), tensor.dtype

    def unpack(packed):
        packed[0].to(packed[1])

    return saved_tensors_hooks(pack, unpack)


@mistake("12.1", "returns_nothing")
def half_saved(counts):
    def pack(tensor):
        return tensor.half(), tensor.dtype

    saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "keeps_both", points=7)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1].dtype))


@mistake("12.1", "keeps_both", points=7)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small.to(tensor.dtype)

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "never_counts", points=6)
def half_saved(counts):
    def pack(tensor):
        return (tensor.half() if tensor.dtype == torch.float32 else tensor), tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "swapped", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["kept"] += tensor.nbytes
        counts["saved"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "elements", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.numel()
        counts["kept"] += small.numel()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "tensors", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += 1
        counts["kept"] += 1
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "same_twice", points=6)
def half_saved(counts):
    def pack(tensor):
        dtype = tensor.dtype
        if dtype == torch.float32:
            tensor = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return tensor, dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "last_only", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] = tensor.nbytes
        counts["kept"] = small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "other_keys", points=6)
def half_saved(counts):
    counts.update(before=0, after=0)

    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["before"] += tensor.nbytes
        counts["after"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "stays_on", points=7)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])).__enter__()
    return contextlib.nullcontext()


@mistake("12.1", "grows", points=8)
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        if tensor.dtype == torch.float32:
            tensor = tensor.half()
        counts["kept"] += tensor.nbytes
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda kept: kept.float() if kept.dtype == torch.float16 else kept):
        yield


@mistake("12.1", "attached", points=8)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "bfloat16")
def half_saved(counts):
    def pack(tensor):
        small = tensor.to(torch.bfloat16) if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "arguments")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda small, dtype: small.to(dtype))


@mistake("12.1", "arguments")
def half_saved(counts):
    return saved_tensors_hooks(lambda: None, lambda packed: packed)


@mistake("12.1", "before_twice", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "element_size", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.element_size()
        counts["kept"] += small.element_size()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_kept", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] = small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_kept", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.numel()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_saved", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] = tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_counts", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += 2 * tensor.nbytes
        counts["kept"] += 2 * small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "others_left_out", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        if tensor.dtype == torch.float32:
            counts["saved"] += tensor.nbytes
            counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "weights_left_out")
def half_saved(counts):
    def pack(tensor):
        halved = tensor.dtype == torch.float32 and not isinstance(tensor, torch.nn.Parameter)
        small = tensor.half() if halved else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))
