"""Wrong answers to lesson 14 that passed the checks or got an untrue message, from strangers of the fifteenth round."""

from contextlib import ExitStack
from functools import partial  # noqa: F401  the reference answers use these

import torch  # noqa: F401

from tests.answers import edited, unnamed

# A parameter in an output is taken for something else than a tensor.
edited("14.1", "passes_parameters", ("if isinstance(value, torch.Tensor)", "if type(value) is torch.Tensor"))

# The hook hands on what was kept in an earlier call, of which the model has emptied the containers since.
edited(
    "14.1", "changes_output", ("seen[name] = copied(output)", "return seen.setdefault(name, copied(output))")
)

# Depths are sorted by the names of their blocks, as text: block 10 comes before block 2.
edited(
    "14.2",
    "lens",
    (
        "for x in stream])",
        "for x in [stream[0], *(x for _, x in sorted((str(n), x) for n, x in enumerate(stream[1:])))]])",
    ),
    named=False,
)


# Blocks are found by how their names begin: for block 1, blocks 10 and 11 are patched as well.
@unnamed("14.3", "patches")
def patched(model, clean, corrupted, number, place):
    kept = {}
    blocks = [block for n, block in model.blocks.named_children() if n.startswith(str(number))]

    def keep(module, args, output):
        kept[module] = output.detach().clone()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[module][:, place]
        return output

    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block.register_forward_hook(keep))
        model(clean)
    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block.register_forward_hook(patch))
        return model(corrupted)
