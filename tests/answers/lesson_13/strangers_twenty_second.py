"""Wrong answers to lesson 13 that were accepted from strangers in their twenty-second round: another dtype, another shape."""

import torch

from tests.answers import alternative, edited

edited("13.2", "converted", ("output.detach().clone()", "output.detach().clone().float()"))

# A batch of one is a batch, too.
edited("13.2", "converted", ("output.detach().clone()", "output.detach().clone().squeeze()"))

edited("13.2", "converted", ("output.detach().clone()", "output.detach().clone().flatten(1)"))

# Here the first output shows it already.
edited("13.2", "converted", ("output.detach().clone()", "output.detach().double()"))


@alternative("13.2")
def layer_output(compiled, name, x):
    kept, layer = [], compiled.get_submodule(name)

    def keep(module, args, output):
        if module is layer:
            kept.append(output.new_tensor(output.tolist()))

    # A hook on all modules.
    with torch.compiler.set_stance("force_eager"):
        with torch.nn.modules.module.register_module_forward_hook(keep):
            compiled(x)
    return kept[0]
