"""Wrong answers to lesson 13 that passed the checks, from strangers of the sixteenth round."""

import torch

from tests.answers import mistake


# Of what the hook returns only a tensor is passed on.
@mistake("13.1", "only_tensors", points=11)
def watched(model, name, hook):
    torch.compiler.reset()

    @torch.compiler.disable
    def outside(module, args, output):
        result = hook(module, args, output)
        if isinstance(result, torch.Tensor):
            return result

    handle = model.get_submodule(name).register_forward_hook(outside)
    return torch.compile(model, backend="eager"), handle


# Every layer whose name ends with the one asked for gets the hook.
@mistake("13.1", "other_modules")
def watched(model, name, hook):
    torch.compiler.reset()
    outside = torch.compiler.disable(hook)
    for full, module in model.named_modules():
        if full.endswith(name):
            handle = module.register_forward_hook(outside)
    return torch.compile(model, backend="eager"), handle
