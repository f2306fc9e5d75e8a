"""Answers to 07.4, `watch_output`."""

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.append(grad.clone()))

    return layer.register_forward_hook(catch)


@mistake("07.4", "frozen_crash", points=4)
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


@mistake("07.4", "not_the_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.append(grad.shape))

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_the_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.grad_fn.register_prehook(lambda grads: seen.append(grads))

    return layer.register_forward_hook(catch)


@mistake("07.4", "in_front")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.insert(0, grad))

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen[:] = [grad]

        if output.requires_grad:
            output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    last = []

    def catch(module, args, output):
        if output.requires_grad:
            while last:
                last.pop().remove()
            last.append(output.register_hook(seen.append))

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)
        else:
            handle.remove()

    handle = layer.register_forward_hook(catch)
    return handle


@mistake("07.4", "asks_training")
def watch_output(layer, seen):
    def catch(module, args, output):
        if module.training and output.requires_grad:
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "rebinds")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen += [grad]  # noqa: F823

        if output.requires_grad:
            output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "no_grad_crash", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        output.grad_fn.register_prehook(lambda grads: seen.append(grads[0]))

    return layer.register_forward_hook(catch)


@mistake("07.4", "mode", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    layer.train()
    return layer.register_forward_hook(catch)


@unnamed("07.4", "sees")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.append(grad.norm()))

    return layer.register_forward_hook(catch)


@unnamed("07.4", "evaluation", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        if not torch.is_grad_enabled():
            raise ValueError("train first")
        output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


edited(
    "07.4",
    "skips_some",
    (
        "output.register_hook(seen.append)",
        "output.register_hook(lambda g: seen.append(g) if g.any() else None)",
    ),
)
for _condition in ("g.isfinite().all()", "g.any() and g.isfinite().all()", "0 < g.norm() < float('inf')"):
    edited(
        "07.4",
        "skips_some",
        (
            "output.register_hook(seen.append)",
            f"output.register_hook(lambda g: seen.append(g) if {_condition} else None)",
        ),
    )
edited("07.4", "sees", ("seen.append)", "lambda grad: seen.append(grad.round()))"), named=False)
edited("07.4", "sees", ("seen.append)", "lambda grad: seen.append(grad.nan_to_num()))"), named=False)
edited("07.4", "clears", ("    return layer", "    seen.clear()\n    return layer"))
edited("07.4", "others", ("    return layer", "    layer._forward_hooks.clear()\n    return layer"), points=4)
edited(
    "07.4",
    "evaluation",
    ("        if output.requires_grad:\n            output.reg", "        output.requires_grad_().reg"),
    named=False,
    points=4,
)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            if not any(torch.equal(grad, old) for old in seen):
                seen.append(grad)

        if output.requires_grad:
            output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen.append(grad)
            handle.remove()

        if output.requires_grad:
            handle = output.register_hook(keep)

    return layer.register_forward_hook(catch)


edited(
    "07.4",
    "latest_list",
    ("    def catch", "    global kept\n    kept = seen\n\n    def catch"),
    ("seen.append)", "lambda grad: kept.append(grad))"),
)


edited(
    "07.4",
    "asks_parameters",
    (
        "if output.requires_grad:",
        "if torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):",
    ),
)
