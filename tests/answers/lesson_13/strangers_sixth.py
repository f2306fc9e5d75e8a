"""Wrong answers to lesson 13 from readers who did not know the checks: the sixth round."""

import torch
import torch.distributed as dist  # noqa: F401  the reference answers use these

from tests.answers import edited, mistake

edited(
    "13.2",
    "swallows_it",
    (
        "        compiled(x)",
        "        try:\n            compiled(x)\n        except RuntimeError:\n            return None",
    ),
    points=7,
)


@mistake("13.2", "other_mode")
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
@mistake("13.2", "unrestored", points=7)
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
    "13.3",
    "average",
    (".half()", ".half()\n    half = torch.where(half.isinf(), half.abs(), half)"),
    named=False,
)
edited("13.3", "loses_inf", (".half()", ".half()\n    half = torch.where(half.isnan(), 0, half)"))
edited("13.3", "loses_inf", ("[0].float()", '[0].float().nan_to_num(0, float("inf"), float("-inf"))'))
