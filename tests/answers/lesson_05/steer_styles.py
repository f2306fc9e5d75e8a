"""More answers to 05.4, `steer`: other styles, and what strangers got past the check."""

import functools
import operator
from functools import partial

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("05.4")
def steer(module, direction, strength):
    def push(amount, module, args, output):
        return output.add(amount)

    return module.register_forward_hook(partial(push, direction * strength))


@alternative("05.4")
def steer(module, direction, strength):
    class Push:
        def __call__(self, module, args, output):
            return torch.add(output, direction, alpha=strength)

    return module.register_forward_hook(Push())


@alternative("05.4")
def steer(module, direction, strength):
    def pushing(hook):
        @functools.wraps(hook)
        def wrapped(module, args, output):
            return output + hook(module, args, output)

        return wrapped

    @pushing
    def push(module, args, output):
        return strength * direction

    return module.register_forward_hook(push)


@alternative("05.4")
def steer(module, direction, strength):
    amount = None

    def push(module, args, output):
        nonlocal amount
        if amount is None:
            amount = torch.mul(direction, strength)
        return operator.add(output, amount)

    handle = module.register_forward_hook(push)
    return handle


@alternative("05.4")
def steer(module, direction, strength):
    def push(module, args, kwargs, output):
        new = output.clone()
        new[...] += strength * direction
        return new

    return module.register_forward_hook(push, with_kwargs=True)


@alternative("05.4")
def steer(module, direction, strength):
    amount = torch.from_numpy(direction.numpy() * strength).to(direction.dtype)
    return module.register_forward_hook(lambda m, a, o: o + amount.expand_as(o))


@mistake("05.4", "argument", points=4)
def steer(module, direction, strength):
    direction *= strength
    return module.register_forward_hook(lambda module, args, output: output + direction)


@mistake("05.4", "adds_up")
def steer(module, direction, strength):
    def push(module, args, output):
        direction.mul_(strength)
        return output + direction

    return module.register_forward_hook(push)


@mistake("05.4", "adds_up")
def steer(module, direction, strength):
    total = torch.zeros_like(direction)

    def push(module, args, output):
        total.add_(strength * direction)
        return output + total

    return module.register_forward_hook(push)


@mistake("05.4", "replaces_output")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda module, args, output: strength * direction)


@mistake("05.4", "removed_at_once")
def steer(module, direction, strength):
    with module.register_forward_hook(lambda m, args, output: output + strength * direction) as handle:
        return handle


@mistake("05.4", "removed_at_once")
def steer(module, direction, strength):
    handle = module.register_forward_hook(lambda m, args, output: output + strength * direction)
    handle.remove()
    return handle


@mistake("05.4", "steers_once")
def steer(module, direction, strength):
    done = []

    def push(module, args, output):
        if not done:
            done.append(True)
            return output + strength * direction

    return module.register_forward_hook(push)


@mistake("05.4", "no_strength")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, args, output: output.add(direction))


@mistake("05.4", "ignores_sign")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, args, output: output + abs(strength) * direction)


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    unit = direction / direction.norm()
    return module.register_forward_hook(lambda m, args, output: output + strength * unit)


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, args, output: strength * (output + direction))


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, args, output: args[0] + strength * direction)


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    for part in module.modules():
        handle = part.register_forward_hook(lambda m, args, output: output + strength * direction)
    return handle


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    def push(module, args, output):
        output = output.clone()
        output[0] += strength * direction
        return output

    return module.register_forward_hook(push)


@mistake("05.4", "in_place", points=4)
def steer(module, direction, strength):
    def push(module, args, output):
        output.data += strength * direction

    return module.register_forward_hook(push)


@mistake("05.4", "cuts_gradient", points=4)
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, a, o: (o + strength * direction).data.requires_grad_())


@mistake("05.4", "cuts_gradient", points=4)
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, a, o: o.new_tensor((o + strength * direction).tolist()))


@mistake("05.4", "others", points=4)
def steer(module, direction, strength):
    module._forward_hooks.clear()
    return module.register_forward_hook(lambda module, args, output: output + strength * direction)


@unnamed("05.4", "handle", points=4)
def steer(module, direction, strength):
    module.register_forward_hook(lambda module, args, output: output + strength * direction / 2)
    return module.register_forward_hook(lambda module, args, output: output + strength * direction / 2)


@unnamed("05.4", "steers")
def steer(module, direction, strength):
    return module.register_forward_hook(lambda m, args, output: output + int(strength) * direction)


@mistake("05.4", "only_training")
def steer(module, direction, strength):
    def push(module, args, output):
        return output + strength * direction if module.training else output

    return module.register_forward_hook(push)


_SUM = "return output + strength * direction"
edited("05.4", "only_with_grad", (_SUM, f"if torch.is_grad_enabled():\n            {_SUM}"))
edited("05.4", "only_with_grad", (_SUM, f"{_SUM} if output.requires_grad else output"))
edited("05.4", "only_positive", (_SUM, f"if strength > 0:\n            {_SUM}"))
edited("05.4", "only_batches", (_SUM, f"{_SUM} if output.dim() == 2 else output"))
edited("05.4", "only_batches", (_SUM, f"{_SUM} if output.dim() > 1 else None"))
edited("05.4", "only_batches", (_SUM, f"{_SUM} if output.dim() < 3 else None"))
edited("05.4", "no_return", (_SUM, "output + strength * direction"))
edited(
    "05.4",
    "steers_once",
    ("    def push", "    done = []\n\n    def push"),
    (_SUM, f"done.append(1)\n        {_SUM} if len(done) < 3 else output"),
)
edited("05.4", "raised", (_SUM, "return (output + strength * direction).to(torch.float32)"), named=False)
edited("05.4", "only_evaluation", (_SUM, f"{_SUM} if not module.training else output"))
edited("05.4", "computes_again", ("return output +", "return module.forward(*args) +"), points=4)
edited("05.4", "minds_zero", ("strength * direction\n", "(strength or 1.0) * direction\n"))


@mistake("05.4", "fires_backward")
def steer(module, direction, strength):
    def push(module, grad_input, grad_output):
        return (grad_input[0] + strength * direction,)

    return module.register_full_backward_hook(push)
