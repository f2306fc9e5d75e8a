"""Wrong answers to lesson 12 that passed the checks, from strangers of the fourteenth round."""

from torch.autograd.graph import saved_tensors_hooks  # noqa: F401  the reference answers use these

from tests.answers import edited

# bfloat16 is halved as well: it has two bytes already, and numbers that float16 cannot hold.
edited(
    "12.1",
    "all_halved",
    ("tensor.dtype == torch.float32", "tensor.dtype in (torch.float32, torch.bfloat16)"),
    points=8,
)
