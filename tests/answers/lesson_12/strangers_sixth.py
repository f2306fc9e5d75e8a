"""Wrong answers to lesson 12 from readers who did not know the checks: the sixth round."""

import torch
import torch.distributed as dist  # noqa: F401  the reference answers use these
from torch.autograd.graph import saved_tensors_hooks

from tests.answers import edited, mistake


# Of two managers that are in use at once, the last gets the bytes of both.
@mistake("12.1", "one_for_all", points=7)
def half_saved(counts):
    global now
    now = counts

    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        now["saved"] += tensor.nbytes
        now["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


edited(
    "12.1",
    "not_all",
    ("if tensor.dtype == torch.float32", "if tensor.dtype == torch.float32 and tensor.numel() > 1"),
    points=8,
)
