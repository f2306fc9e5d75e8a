"""Wrong answers to 14.5, `steering`: what comes out is not what was asked for."""

from contextlib import (
    ExitStack,
    contextmanager,
)

import torch

from tests.answers import edited, mistake, unnamed

edited("14.5", "wrong_sign", ("output + strength", "output - strength"))
edited("14.5", "no_strength", ("strength * direction\n\n    with", "direction\n\n    with"))
edited("14.5", "instead", ("output + strength * direction", "(strength * direction).expand_as(output)"))
edited(
    "14.5", "instead", ("output + strength * direction", "strength * direction + torch.zeros_like(output)")
)
edited("14.5", "no_return", ("return output +", "output = output +"))
edited("14.5", "not_on_inside", ("        yield", "        pass\n    yield"))
edited("14.5", "ignores_sign", ("output + strength", "output + abs(strength)"))
edited("14.5", "twice", ("output + strength", "output + 2 * strength"))
edited("14.5", "middle", ("model.blocks[number].reg", "model.blocks[number].middle.reg"))
edited(
    "14.5",
    "returns_tuple",
    ("return output + strength * direction", "return (output + strength * direction,)"),
)
edited("14.5", "wrong_arguments", ("add(module, args, output)", "add(output)"))
edited("14.5", "calls_now", ("register_forward_hook(add)", "register_forward_hook(print())"))
edited("14.5", "cuts_gradient", ("return output +", "return output.detach() +"), points=17)
edited(
    "14.5",
    "cuts_gradient",
    ("output + strength * direction", "(output + strength * direction).detach()"),
    points=17,
)
edited(
    "14.5",
    "other_bits",
    ("output + strength * direction", "(output - direction) + (1 + strength) * direction"),
    points=17,
)
edited(
    "14.5",
    "first_word",
    (
        "return output + strength * direction",
        "output = output.clone()\n        output[:, 0] += strength * direction\n        return output",
    ),
)
edited(
    "14.5",
    "last_word",
    (
        "return output + strength * direction",
        "output = output.clone()\n        output[:, -1] += strength * direction\n        return output",
    ),
)
edited(
    "14.5",
    "only_prompt",
    ("return output +", "if output.shape[1] > 1:\n            return output +"),
    points=17,
)
edited("14.5", "inside", ("output + strength", "output * strength"), named=False)
edited(
    "14.5",
    "normalised",
    ("output + strength * direction", "output + strength * direction / direction.norm()"),
)


@mistake("14.5", "all_blocks")
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args, output):
        return output + strength * direction

    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(add))
        yield


@mistake("14.5", "before_block")
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args):
        return (args[0] + strength * direction, *args[1:])

    with model.blocks[number].register_forward_pre_hook(add):
        yield


@mistake("14.5", "next_input", points=17)
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args):
        return (args[0] + strength * direction, *args[1:])

    after = [*model.blocks, model.norm][number + 1]
    with after.register_forward_pre_hook(add):
        yield


@mistake("14.5", "other_block")
@contextmanager
def steering(model, number, direction, strength):
    with model.blocks[number - 1].register_forward_hook(lambda m, args, out: out + strength * direction):
        yield


@mistake("14.5", "other_block")
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[(number + 1) % len(model.blocks)]
    with block.register_forward_hook(lambda m, args, out: out + strength * direction):
        yield


@mistake("14.5", "twice")
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args, output):
        return output + strength * direction

    block = model.blocks[number]
    with block.register_forward_hook(add), block.mlp.register_forward_hook(add):
        yield


@mistake("14.5", "steers_once", points=15)
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args, output):
        handle.remove()
        return output + strength * direction

    handle = model.blocks[number].register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()


@mistake("14.5", "adds_up", points=15)
@contextmanager
def steering(model, number, direction, strength):
    total = torch.zeros_like(direction)

    def add(module, args, output):
        nonlocal total
        total = total + strength * direction
        return output + total

    with model.blocks[number].register_forward_hook(add):
        yield


edited("14.5", "not_always", ("    with model", "    if strength < 0:\n        strength = 0\n    with model"))
edited("14.5", "not_always", ("return output +", "if len(output) > 1:\n            return output +"))
edited(
    "14.5",
    "only_with_grad",
    ("return output +", "if torch.is_grad_enabled():\n            return output +"),
    points=17,
)
edited("14.5", "relative", ("output + strength", "output + output.mean() * strength"))
edited(
    "14.5",
    "outputs",
    ("strength * direction\n\n    with", "strength * direction + 1\n\n    with"),
    points=16,
    named=False,
)
edited("14.5", "inside", ("direction\n\n    with", "direction.norm()\n\n    with"), named=False)


@unnamed("14.5", "inside")
@contextmanager
def steering(model, number, direction, strength):
    with model.embed.register_forward_hook(lambda m, args, out: out + strength * direction):
        yield


@unnamed("14.5", "inside")
@contextmanager
def steering(model, number, direction, strength):
    with model.unembed.register_forward_pre_hook(lambda m, args: args[0] + strength * direction):
        yield


edited(
    "14.5", "normalised", ("direction\n\n    with", "nn.functional.normalize(direction, dim=0)\n\n    with")
)
edited(
    "14.5", "relative", ("direction\n\n    with", "output.norm(dim=-1, keepdim=True) * direction\n\n    with")
)
edited(
    "14.5", "relative", ("direction\n\n    with", "output.std() * direction / direction.norm()\n\n    with")
)
edited("14.5", "other_strength", ("direction\n\n    with", "direction / direction.abs().max()\n\n    with"))
