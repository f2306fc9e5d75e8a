"""Answers to 07.5, `stop_gradient`."""

import torch

from tests.answers import alternative, mistake


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, grad_input, grad_output: (None,) * len(grad_input))


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_forward_pre_hook(lambda module, args: tuple(arg.detach() for arg in args))


@alternative("07.5")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        if grad_input[0] is not None:
            return (grad_input[0] * 0,)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    return layer.register_full_backward_pre_hook(lambda m, go: tuple(torch.zeros_like(g) for g in go))


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    def catch(module, args, output):
        output.register_hook(torch.zeros_like)

    return layer.register_forward_hook(catch)


@mistake("07.5", "freezes_layer")
def stop_gradient(layer):
    layer.requires_grad_(False)


@mistake("07.5", "nothing_stops")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        grad_input = tuple(torch.zeros_like(grad) for grad in grad_input if grad is not None)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "nothing_stops")
def stop_gradient(layer):
    pass


@mistake("07.5", "in_place", points=4)
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        for grad in grad_input:
            if grad is not None:
                grad.zero_()

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "in_place", points=4)
def stop_gradient(layer):
    def catch(module, args):
        if args[0].requires_grad:
            args[0].register_hook(torch.zeros_like)

    return layer.register_forward_pre_hook(catch)


@mistake("07.5", "wrong_size")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros(1),))


@mistake("07.5", "first_layer", points=4)
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros_like(gi[0]),))


@mistake("07.5", "first_layer", points=4)
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (0 * gi[0],))


@mistake("07.5", "cuts_output")
def stop_gradient(layer):
    return layer.register_forward_hook(lambda module, args, output: output.detach())


@mistake("07.5", "returns_tensor")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: torch.zeros_like(gi[0]))


@mistake("07.5", "three_arguments")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda grad: (torch.zeros_like(grad),))


@mistake("07.5", "no_handle", points=4)
def stop_gradient(layer):
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: (None,))
