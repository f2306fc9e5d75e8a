"""What the fifteenth strangers tried on lesson 08: some tables of hooks, gradients off, and names for printing."""

import torch

from tests.answers import edited, mistake


@mistake("08.3", "misses_kinds")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    found = []
    for path, module in model.named_modules():
        for table in (
            module._forward_pre_hooks,
            module._forward_hooks,
            module._backward_pre_hooks,
            module._backward_hooks,
        ):
            for key in [key for key in table if key not in known]:
                del table[key]
                found.append(path)
    return found


edited("08.3", "misses_kinds", ("not in known]", "not in known and 'state_dict' not in hook.kind]"))
edited(
    "08.3",
    "misses_kinds",
    ("not in known]", "not in known and hook.kind.split('_')[0] in ('forward', 'backward')]"),
)
edited("08.4", "other_mode", ("hook(hook)", "hook(torch.no_grad()(hook))"))
edited("08.4", "other_mode", ("hook(hook)", "hook(torch.inference_mode()(hook))"))
edited("08.4", "other_mode", ("hook(hook)", "hook(torch.enable_grad()(hook))"))


@mistake("08.4", "other_mode")
def register_once(handles, name, module, hook):
    def quietly(module, args, output):
        with torch.set_grad_enabled(False):
            return hook(module, args, output)

    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(quietly)
    return handles[name]


@mistake("08.4", "removes_itself")
def register_once(handles, name, module, hook):
    def once(module, args, output):
        handles[name].remove()
        return hook(module, args, output)

    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(once)
    return handles[name]


edited("08.4", None, ("hook(hook)", "hook(lambda *values: hook(*values))"))
edited(
    "08.5", None, ("register_module_forward_hook(end)", "register_module_forward_hook(end, always_call=True)")
)
