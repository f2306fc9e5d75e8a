"""Answers to 07.3, `guided_relu`."""

import torch
from torch import nn

from tests.answers import alternative, edited, mistake, unnamed


@alternative("07.3")
def guided_relu(model):
    handles = []

    def keep_positive(module, grad_input, grad_output):
        (grad,) = grad_input
        return (torch.where(grad > 0, grad, torch.zeros_like(grad)),)

    for name, module in model.named_modules():
        if type(module) is nn.ReLU:
            handles.append(module.register_full_backward_hook(keep_positive))
    return handles


@alternative("07.3")
def guided_relu(model):
    def drop_negative(module, grad_output):
        return tuple(grad.clamp(min=0) for grad in grad_output)

    return [
        m.register_full_backward_pre_hook(drop_negative) for m in model.modules() if isinstance(m, nn.ReLU)
    ]


@alternative("07.3")
def guided_relu(model):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: grad.relu())

    return [m.register_forward_hook(catch) for m in model.modules() if isinstance(m, nn.ReLU)]


edited(
    "07.3",
    "no_grad_crash",
    ("        if output.requires_grad:\n            output", "        output"),
    of=guided_relu,
    points=4,
)


@mistake("07.3", "nothing_changed")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "nothing_changed")
def guided_relu(model):
    return []


@mistake("07.3", "deconvnet")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_output[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "top_level_only")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.children() if isinstance(m, nn.ReLU)]


@mistake("07.3", "every_module")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules()]


@mistake("07.3", "only_the_model")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [model.register_full_backward_hook(keep_positive)]


@mistake("07.3", "wrong_sign")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(max=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "absolute")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].abs(),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@alternative("07.3")
def guided_relu(model):
    mine = [m for m in model.modules() if isinstance(m, nn.ReLU)]

    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),) if module in mine else None

    return [torch.nn.modules.module.register_module_full_backward_hook(keep_positive)]


@mistake("07.3", "every_model", points=4)
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        if isinstance(module, nn.ReLU):
            return (grad_input[0].clamp(min=0),)

    return [torch.nn.modules.module.register_module_full_backward_hook(keep_positive)]


@mistake("07.3", "wrong_size")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0][grad_input[0] > 0],)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "legacy")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "wrong_number")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return grad_input[0].clamp(min=0)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "three_arguments")
def guided_relu(model):
    def keep_positive(grad):
        return grad.clamp(min=0)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "no_handle", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))


@mistake("07.3", "one_handle", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handle = module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
    return handle


@mistake("07.3", "shortcut")
def guided_relu(model):
    def catch(module, args, output):
        args[0].register_hook(lambda grad: grad.relu())

    return [m.register_forward_hook(catch) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "shortcut")
def guided_relu(model):
    def drop_negative(module, grad_output):
        grad_output[0].clamp_(min=0)

    return [
        m.register_full_backward_pre_hook(drop_negative) for m in model.modules() if isinstance(m, nn.ReLU)
    ]


@mistake("07.3", "one_relu")
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            return [module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))]


@mistake("07.3", "other_activations")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if "ReLU" in str(type(m))]


@mistake("07.3", "all_zero")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (torch.zeros_like(grad_input[0]),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "once")
def guided_relu(model):
    handles = []

    def keep_positive(module, grad_input, grad_output):
        if len(done) < 2:
            done.append(module)
            return (grad_input[0].clamp(min=0),)

    done = []
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handles.append(module.register_full_backward_hook(keep_positive))
    return handles


@mistake("07.3", "some_handles", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handles = [module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))]
    return handles


@mistake("07.3", "mode", points=4)
def guided_relu(model):
    model.train()
    return [
        module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
        for module in model.modules()
        if isinstance(module, nn.ReLU)
    ]


@mistake("07.3", "requires_grad", points=4)
def guided_relu(model):
    model.requires_grad_(True)
    return [
        module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
        for module in model.modules()
        if isinstance(module, nn.ReLU)
    ]


@mistake("07.3", "others", points=4)
def guided_relu(model):
    for module in model.modules():
        module._forward_hooks.clear()
    return [
        module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
        for module in model.modules()
        if isinstance(module, nn.ReLU)
    ]


@mistake("07.3", "every_model", points=4)
def guided_relu(model):
    def catch(module, args, output):
        if isinstance(module, nn.ReLU) and output.requires_grad:
            output.register_hook(lambda grad: grad.clamp(min=0))

    return [torch.nn.modules.module.register_module_forward_hook(catch)]


@mistake("07.3", "wrong_number")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return grad_input[0].clamp(min=0), None

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@unnamed("07.3", "guided")
def guided_relu(model):
    def keep_double(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0) * 2,)

    return [m.register_full_backward_hook(keep_double) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "wrong_dtype")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        (grad,) = grad_input
        return (grad * (grad > 0).float(),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "wrong_dtype")
def guided_relu(model):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: torch.where(grad > 0, grad, torch.zeros(grad.shape)))

    return [m.register_forward_hook(catch) for m in model.modules() if isinstance(m, nn.ReLU)]


@alternative("07.3")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        (grad,) = grad_input
        return (grad * (grad > 0).to(grad.dtype),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


edited("07.3", "nothing_changed", ("isinstance(module, nn.ReLU)", "module is nn.ReLU"))
edited("07.3", "asks_training", ("return (grad", "if module.training:\n            return (grad"))
edited(
    "07.3",
    "others",
    ("    return [\n", "    for m in model.modules():\n        m._backward_hooks.clear()\n    return [\n"),
    points=4,
)


@mistake("07.3", "last_forward")
def guided_relu(model):
    last = {}

    def note(module, args, output):
        last[module] = output.detach()

    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0) * (last[module] > 0),)

    handles = []
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handles += [module.register_forward_hook(note), module.register_full_backward_hook(keep_positive)]
    return handles


@unnamed("07.3", "again")
def guided_relu(model):
    last = {}

    def note(module, args, output):
        last[module] = output.detach()

    def keep_positive(module, grad_input, grad_output):
        return (grad_output[0].clamp(min=0) * (last[module] > 0),)

    handles = []
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handles += [module.register_forward_hook(note), module.register_full_backward_hook(keep_positive)]
    return handles


@mistake("07.3", "threshold")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        (grad,) = grad_input
        return (torch.where(grad > 1e-3, grad, torch.zeros_like(grad)),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "no_list", points=4)
def guided_relu(model):
    handles = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.ReLU):
            handles[name] = module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
    return handles


edited(
    "07.3",
    "handle",
    (
        "        module.register_full_backward_hook(keep_positive)\n",
        "        [module.register_full_backward_hook(keep_positive)]\n",
    ),
    named=False,
    points=4,
)
