"""Answers to 07.4, `watch_output`."""

import torch

from tests.answers import alternative, mistake


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if torch.is_grad_enabled():
            output.register_hook(lambda grad: seen.append(grad.clone()))

    return layer.register_forward_hook(catch)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.grad_fn is not None:
            output.register_hook(seen.append)
        return output

    return layer.register_forward_hook(catch)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        try:
            output.register_hook(seen.append)
        except RuntimeError:
            pass

    return layer.register_forward_hook(catch)


@mistake("07.4", "full_hook")
def watch_output(layer, seen):
    return layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0]))


@mistake("07.4", "full_hook")
def watch_output(layer, seen):
    return layer.register_full_backward_pre_hook(lambda m, go: seen.append(go[0]))


@mistake("07.4", "returns_handle")
def watch_output(layer, seen):
    return layer.register_forward_hook(lambda m, args, output: output.register_hook(seen.append))


@mistake("07.4", "detached")
def watch_output(layer, seen):
    def catch(module, args, output):
        output.detach().register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "after_relu")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            output.register_hook(lambda grad: seen.append(output.grad))

    return layer.register_forward_hook(catch)


@mistake("07.4", "keeps_output")
def watch_output(layer, seen):
    def catch(module, args, output):
        output.retain_grad()
        seen.append(output)

    return layer.register_forward_hook(catch)


@mistake("07.4", "reads_dot_grad")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            seen.append(output.grad)

    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_input")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad and not caught:
            caught.append(args[0].register_hook(seen.append))

    caught = []
    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_weight")
def watch_output(layer, seen):
    return layer.weight.register_hook(seen.append)


@mistake("07.4", "not_registered")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    return catch


@mistake("07.4", "not_registered")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen = [grad]

        if output.requires_grad:
            output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad and not seen:
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_input")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            args[0].register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "changes_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen.append(grad)
            return grad / grad.norm()

        output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "changes_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        leaf = output.detach().requires_grad_()
        leaf.register_hook(seen.append)
        return leaf * 1

    return layer.register_forward_hook(catch)


@mistake("07.4", "no_grad_crash", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "no_handle", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    layer.register_forward_hook(catch)
