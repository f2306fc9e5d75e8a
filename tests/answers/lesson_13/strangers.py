"""Wrong answers to lesson 13 from readers who did not know the checks."""

from collections import Counter  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch
from torch.autograd.graph import saved_tensors_hooks  # noqa: F401

from tests.answers import mistake


@mistake("13.2", "hooks", points=7)
def layer_output(compiled, name, x):
    layer, seen = compiled.get_submodule(name), []

    def keep(module, args, output):
        if module is layer:
            seen.append(output.detach().clone())

    torch.nn.modules.module.register_module_forward_hook(keep)
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen[0]


@mistake("13.2", "process", points=7)
def layer_output(compiled, name, x):
    seen = []
    torch.set_grad_enabled(False)
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, o: seen.append(o.clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]
