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

edited(
    "12.3",
    "swallows_it",
    (
        "        compiled(x)",
        "        try:\n            compiled(x)\n        except RuntimeError:\n            return None",
    ),
    points=7,
)


@mistake("12.3", "other_mode")
def layer_output(compiled, name, x):
    modes = {module: module.training for module in compiled.modules()}
    seen = []

    def keep(module, args, output):
        seen.append(output.detach().clone())

    compiled.eval()
    try:
        with compiled.get_submodule(name).register_forward_hook(keep):
            with torch.compiler.set_stance("force_eager"):
                compiled(x)
    finally:
        for module, mode in modes.items():
            module.training = mode
    return seen[0]


# Grad mode stays off after an exception.
@mistake("12.3", "unrestored", points=7)
def layer_output(compiled, name, x):
    seen, on = [], torch.is_grad_enabled()

    def keep(module, args, output):
        seen.append(output.clone())

    torch.set_grad_enabled(False)
    with compiled.get_submodule(name).register_forward_hook(keep), torch.compiler.set_stance("force_eager"):
        compiled(x)
    torch.set_grad_enabled(on)
    return seen[0]


# Of the two infinities, one changes its sign; nan becomes a number.
edited(
    "12.4",
    "average",
    (".half()", ".half()\n    half = torch.where(half.isinf(), half.abs(), half)"),
    named=False,
)
edited("12.4", "loses_inf", (".half()", ".half()\n    half = torch.where(half.isnan(), 0, half)"))
edited("12.4", "loses_inf", ("[0].float()", '[0].float().nan_to_num(0, float("inf"), float("-inf"))'))
