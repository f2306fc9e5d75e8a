"""Answers to 05.4, `steer`."""

import torch

from tests.answers import alternative, mistake


@alternative("05.4")
def steer(module, direction, strength):
    def push(module, args, output):
        return output + strength * direction

    return module.register_forward_hook(push)


@alternative("05.4")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda *seen: torch.add(seen[-1], direction, alpha=strength))


@alternative("05.4")
def steer(module, direction, strength):
    def push(module, args, output):
        output = output.clone()
        output += strength * direction
        return output

    return module.register_forward_hook(push)


@alternative("05.4")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, a, o: o.sub(-strength * direction), prepend=True)


@mistake("05.4", "no_return")
def steer(module, direction, strength):
    def push(module, args, output):
        output = output + strength * direction

    return module.register_forward_hook(push)


@mistake("05.4", "not_registered")
def steer(module, direction, strength):
    def push(module, args, output):
        return output + strength * direction

    return push


@mistake("05.4", "replaces_output")
def steer(module, direction, strength):
    def push(module, args, output):
        return (strength * direction).expand_as(output)

    return module.register_forward_hook(push)


@mistake("05.4", "no_strength")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda module, args, output: output + direction)


@mistake("05.4", "wrong_sign")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda module, args, output: output - strength * direction)


@mistake("05.4", "steers_input")
def steer(module, direction, strength):
    return module.register_forward_pre_hook(lambda module, args: args[0] + strength * direction)


@mistake("05.4", "steers_once")
def steer(module, direction, strength):
    def push(module, args, output):
        handle.remove()
        return output + strength * direction

    handle = module.register_forward_hook(push)
    return handle


@mistake("05.4", "changes_weights")
def steer(module, direction, strength):
    with torch.no_grad():
        module.bias += strength * direction


@mistake("05.4", "in_place", points=4)
def steer(module, direction, strength):
    def push(module, args, output):
        output += strength * direction

    return module.register_forward_hook(push)


@mistake("05.4", "in_place", points=4)
def steer(module, direction, strength):
    def push(module, args, output):
        return output.add_(direction, alpha=strength)

    return module.register_forward_hook(push)


@mistake("05.4", "in_place", points=4)
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, a, o: o.add_(strength * direction), prepend=True)


@mistake("05.4", "cuts_gradient", points=4)
def steer(module, direction, strength):
    return module.register_forward_hook(lambda module, args, output: output.detach() + strength * direction)


@mistake("05.4", "cuts_gradient", points=4)
def steer(module, direction, strength):
    def push(module, args, output):
        with torch.no_grad():
            return output + strength * direction

    return module.register_forward_hook(push)


@mistake("05.4", "returns_tuple")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda module, args, output: (output + strength * direction,))


@mistake("05.4", "calls_now")
def steer(module, direction, strength):
    def push(module, args, output):
        pass

    return module.register_forward_hook(push(module, None, direction))


@mistake("05.4", "wrong_arguments")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda output: output + strength * direction)


@mistake("05.4", "no_handle", points=4)
def steer(module, direction, strength):
    module.register_forward_hook(lambda module, args, output: output + strength * direction)
