"""Answers to 07.3, `guided_relu`."""

import torch
from torch import nn

from tests.answers import alternative, mistake


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
        args[0].register_hook(lambda grad: grad.relu())

    return [m.register_forward_hook(catch) for m in model.modules() if isinstance(m, nn.ReLU)]


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


@mistake("07.3", "legacy", points=4)
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "returns_tensor")
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


@mistake("07.3", "no_handle", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handle = module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
    return handle
