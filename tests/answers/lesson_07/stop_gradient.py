"""Answers to 07.5, `stop_gradient`."""

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: tuple(None for grad in gi))


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_forward_pre_hook(lambda module, args: tuple(arg.detach() for arg in args))


@mistake("07.5", "zeros")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        if grad_input[0] is not None:
            return (grad_input[0] * 0,)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "zeros")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        return tuple(None if grad is None else torch.zeros_like(grad) for grad in grad_input)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "zeros")
def stop_gradient(layer):
    def before(module, args):
        def part(value):
            if value.requires_grad and torch.is_grad_enabled():
                value = value.clone()
                value.register_hook(torch.zeros_like)
            return value

        return tuple(map(part, args))

    return layer.register_forward_pre_hook(before)


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


@mistake("07.5", "in_place")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        for grad in grad_input:
            if grad is not None:
                grad.zero_()

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "in_place")
def stop_gradient(layer):
    def catch(module, args):
        if args[0].requires_grad:
            args[0].register_hook(torch.zeros_like)

    return layer.register_forward_pre_hook(catch)


@mistake("07.5", "wrong_size")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros(1),))


@mistake("07.5", "zeros")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros_like(gi[0]),))


@mistake("07.5", "zeros")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (0 * gi[0],))


@mistake("07.5", "cuts_output")
def stop_gradient(layer):
    return layer.register_forward_hook(lambda module, args, output: output.detach())


@mistake("07.5", "wrong_number")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: torch.zeros_like(gi[0]))


@mistake("07.5", "three_arguments")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda grad: (torch.zeros_like(grad),))


@mistake("07.5", "no_handle", points=5)
def stop_gradient(layer):
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: (None,) * len(grad_input))


@mistake("07.5", "detaches_input", points=4)
def stop_gradient(layer):
    def cut(module, args):
        args[0].detach_()

    return layer.register_forward_pre_hook(cut)


@mistake("07.5", "detaches_input", points=5)
def stop_gradient(layer):
    def cut(module, args):
        for arg in args:
            arg.detach_()

    return layer.register_forward_pre_hook(cut)


@mistake("07.5", "one_entry", points=5)
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        return (None,)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "one_input", points=5)
def stop_gradient(layer):
    return layer.register_forward_pre_hook(lambda module, args: (args[0].detach(), *args[1:]))


@mistake("07.5", "one_input", points=5)
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (None, *gi[1:]))


@mistake("07.5", "once")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        handle.remove()
        return (None,) * len(grad_input)

    handle = layer.register_full_backward_hook(stop)
    return handle


@mistake("07.5", "freezes_layer")
def stop_gradient(layer):
    for parameter in layer.parameters():
        parameter.requires_grad = False
    return layer.register_full_backward_hook(lambda m, gi, go: (None,) * len(gi))


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    return layer.register_full_backward_pre_hook(lambda m, go: (None,) * len(go))


@mistake("07.5", "wrong_number")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (None, None, None))


@unnamed("07.5", "stopped")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        return tuple(None if grad is None else grad / 2 for grad in grad_input)

    return layer.register_full_backward_hook(stop)


@unnamed("07.5", "own")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        weight = next(module.parameters())
        weight.grad = None if weight.grad is None else weight.grad * 2
        return (None,) * len(grad_input)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        return (None,) * len(grad_input)

    return torch.nn.modules.module.register_module_full_backward_hook(stop)


edited("07.5", "nothing_stops", ("return (None,) * len(grad_input)", "return None"))
edited("07.5", "zeros", ("(None,) * len(grad_input)", "tuple(g - g for g in grad_input if g is not None)"))
edited("07.5", "asks_training", ("        return", "        if module.training:\n            return"))
edited("07.5", "list_for_tuple", ("(None,)", "[None]"), points=5)
edited("07.5", "legacy", ("register_full_backward_hook", "register_backward_hook"))
edited(
    "07.5", "others", ("    return layer", "    layer._backward_hooks.clear()\n    return layer"), points=5
)
edited("07.5", "grad", ("    return layer", "    layer.zero_grad()\n    return layer"), points=5)


@mistake("07.5", "asks_training")
def stop_gradient(layer):
    def cut(module, args):
        return tuple(arg.detach() for arg in args) if module.training else None

    return layer.register_forward_pre_hook(cut)


@mistake("07.5", "cuts_output")
def stop_gradient(layer):
    layer.requires_grad_(False)
    return layer.register_forward_pre_hook(lambda module, args: tuple(value.detach() for value in args))


@mistake("07.5", "no_grad_crash", points=5)
def stop_gradient(layer):
    def part(value):
        if value.requires_grad:
            value = value.clone()
            value.grad_fn.register_hook(lambda grad_input, grad_output: (None,))
        return value

    return layer.register_forward_pre_hook(lambda module, args: tuple(map(part, args)))


edited(
    "07.5",
    None,
    ("if value.requires_grad", "if value.requires_grad and torch.is_grad_enabled()"),
    of=stop_gradient,
)


@mistake("07.5", "zeros")  # where the layer has another backward hook, which makes zeros of the None
def stop_gradient(layer):
    def catch(module, args, output):
        if output.grad_fn:
            output.grad_fn.register_hook(lambda grads, _: (None, *grads[1:]))

    return layer.register_forward_hook(catch)
