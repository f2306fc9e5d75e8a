"""Answers to 14.5, `steering`."""

import contextlib
import functools
from contextlib import (
    AbstractContextManager,
    ContextDecorator,
    ExitStack,
    contextmanager,
    nullcontext,
)
from functools import partial

import torch
from torch import nn

from tests.answers import alternative, edited, mistake, unnamed


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    finally:
        handle.remove()


@alternative("14.5")
def steering(model, number, direction, strength):
    """A handle is a context manager, but its hook is on already: ExitStack registers later."""

    class Steering:
        def __enter__(self):
            self.handle = model.blocks[number].register_forward_hook(self.add)
            return self

        def add(self, module, args, output):
            return output + strength * direction

        def __exit__(self, *error):
            self.handle.remove()

    return Steering()


@alternative("14.5")
def steering(model, number, direction, strength):
    class Steering(contextlib.AbstractContextManager):
        def __call__(self, module, args, output):
            return torch.add(output, direction, alpha=strength)

        def __enter__(self):
            self.stack = ExitStack()
            self.stack.enter_context(model.blocks[number].register_forward_hook(self))
            return self

        def __exit__(self, kind, error, traceback):
            self.stack.close()
            return False

    return Steering()


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    push = direction * strength

    def add(push, module, args, output):
        return output.add(push)

    with ExitStack() as stack:
        stack.enter_context(model.blocks[number].register_forward_hook(partial(add, push)))
        yield model


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    if strength == 0:
        yield
        return
    with model.get_submodule(f"blocks.{number}").register_forward_hook(
        lambda module, args, output: output + direction * strength
    ) as handle:
        yield handle


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[number]
    forward = block.forward

    @functools.wraps(forward)
    def steered(*args, **kwargs):
        return forward(*args, **kwargs) + strength * direction

    had = "forward" in vars(block)
    block.forward = steered
    try:
        yield
    finally:
        if had:
            block.forward = forward
        else:
            del block.forward


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    class Steered(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def forward(self, x, cache=None):
            return self.block(x, cache) + strength * direction

    original = model.blocks[number]
    model.blocks[number] = Steered(original)
    try:
        yield
    finally:
        model.blocks[number] = original


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    target = model.blocks[number]

    def everywhere(module, args, output):
        if module is target:
            return output + strength * direction

    with nn.modules.module.register_module_forward_hook(everywhere):
        yield


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args, kwargs, output):
        steered = output.clone()
        steered += strength * direction
        return steered

    handle = model.blocks[number].register_forward_hook(add, with_kwargs=True)
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(handle.remove)
        yield


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    """What the MLP adds is part of what the block puts out."""
    with model.blocks[number].mlp.register_forward_hook(lambda m, args, out: out + strength * direction):
        yield


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    handle = None

    def add(module, args, output):
        batch, words, width = output.shape
        return output + (strength * direction).expand(batch, words, width)

    try:
        handle = list(model.blocks)[number].register_forward_hook(add)
        yield
    finally:
        if handle is not None:
            handle.remove()


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    added = strength * direction.detach().clone()
    with model.blocks[number].register_forward_hook(
        lambda module, args, output: torch.stack([row + added for row in output])
    ):
        yield


@alternative("14.5")
def steering(model, number, direction, strength):
    @contextmanager
    def inner():
        with (handle := model.blocks[number].register_forward_hook(hook)):
            yield handle

    def hook(module, args, output):
        return sum([output, strength * direction])

    return inner()


@alternative("14.5")
class AsClass:
    def __init__(self, model, number, direction, strength):
        self.block = model.blocks[number]
        self.push = strength * direction
        self.handles = []

    def hook(self, module, args, output):
        return output + self.push

    def __enter__(self):
        self.handles.append(self.block.register_forward_hook(self.hook))

    def __exit__(self, *error):
        self.handles.pop().remove()


@alternative("14.5")
class AsDecorator(ContextDecorator):
    def __init__(self, model, number, direction, strength):
        self.model, self.number, self.push = model, number, direction.mul(strength)

    def __enter__(self):
        self.handle = self.model.blocks[self.number].register_forward_hook(
            lambda module, args, output, push=self.push: output + push
        )
        return self

    def __exit__(self, kind, value, traceback):
        self.handle.remove()
        return None


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    block = dict(model.named_modules())[f"blocks.{number}"]
    handle = block.register_forward_hook(lambda m, a, o: o + strength * direction[None, None])
    try:
        yield
    except BaseException:
        handle.remove()
        raise
    else:
        handle.remove()


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    on = True

    def add(module, args, output):
        return output + strength * direction if on else None

    handle = model.blocks[number].register_forward_hook(add, always_call=True)
    try:
        yield
    finally:
        on = False
        handle.remove()


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    bias = model.blocks[number].mlp[2].bias
    with torch.no_grad():
        before = bias.clone()
        bias += strength * direction
    try:
        yield
    finally:
        with torch.no_grad():
            bias.copy_(before)


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    def adding(push):
        return lambda module, args, output: output + push.to(output)

    with (
        nullcontext(),
        model.blocks[number].register_forward_hook(adding(torch.as_tensor(strength) * direction)),
    ):
        yield


@alternative("14.5")
@contextmanager
def steering(model, number, direction, strength):
    hooks = [model.blocks[number].register_forward_hook(lambda m, args, out: out - (-strength) * direction)]
    yield_from = ExitStack()
    for hook in hooks:
        yield_from.enter_context(hook)
    with yield_from:
        yield


@alternative("14.5")
def steering(model, number, direction, strength):
    class Steering(AbstractContextManager):
        handle = None

        def __enter__(self):
            def hook(module, args, output, *, push=torch.mul(direction, strength)):
                return torch.add(output, push)

            self.handle = model.blocks[number].register_forward_hook(hook)

        def __exit__(self, *error):
            self.handle.remove()

    return Steering()


edited(
    "14.5",
    None,
    (
        "output + strength * direction",
        "torch.addcmul(output, torch.ones_like(direction), strength * direction)",
    ),
)
edited("14.5", None, ("yield", "yield from [None]"))
edited(
    "14.5",
    None,
    (
        "return output + strength * direction",
        "with torch.enable_grad():\n            return output + strength * direction",
    ),
)


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
    "in_place",
    ("return output + strength * direction", "output += strength * direction\n        return output"),
    points=17,
)
edited(
    "14.5",
    "in_place",
    ("return output + strength * direction", "output.data.add_(strength * direction)"),
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
edited("14.5", "no_grad_inside", ("    with model", "    with torch.no_grad(), model"), points=17)
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


@mistake("14.5", "no_finally", points=17)
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    yield
    handle.remove()


@mistake("14.5", "no_finally", points=17)
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    except Exception:
        handle.remove()
        raise
    handle.remove()


@mistake("14.5", "never_removes", points=13)
@contextmanager
def steering(model, number, direction, strength):
    model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    yield


@mistake("14.5", "never_removes", points=16)
@contextmanager
def steering(model, number, direction, strength):
    on = True
    model.blocks[number].register_forward_hook(
        lambda m, args, out: out + strength * direction if on else None
    )
    try:
        yield
    finally:
        on = False


@mistake("14.5", "not_a_manager")
def steering(model, number, direction, strength):
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
        yield


@mistake("14.5", "too_early", points=17)
def steering(model, number, direction, strength):
    return model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)


@mistake("14.5", "too_early", points=17)
class Early:
    def __init__(self, model, number, direction, strength):
        self.handle = model.blocks[number].register_forward_hook(
            lambda m, args, out: out + strength * direction
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.handle.remove()


@mistake("14.5", "swallows_error", points=17)
class Quiet:
    def __init__(self, model, number, direction, strength):
        self.block, self.push = model.blocks[number], strength * direction

    def __enter__(self):
        self.handle = self.block.register_forward_hook(lambda m, args, out: out + self.push)

    def __exit__(self, *error):
        self.handle.remove()
        return True


@mistake("14.5", "swallows_error", points=17)
@contextmanager
def steering(model, number, direction, strength):
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
        try:
            yield
        except ValueError:
            pass


@mistake("14.5", "swallows_error", points=17)
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    finally:
        handle.remove()
        return  # noqa: B012


@mistake("14.5", "replaces_error", points=17)
@contextmanager
def steering(model, number, direction, strength):
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
        try:
            yield
        except RuntimeError as error:
            raise RuntimeError("steering failed") from error


@mistake("14.5", "yields_twice", points=17)
@contextmanager
def steering(model, number, direction, strength):
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
        try:
            yield
        except BaseException:
            yield


@mistake("14.5", "removes_others", points=12)
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[number]
    block.register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    finally:
        block._forward_hooks.popitem()


@mistake("14.5", "removes_others", points=16)
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[number]
    block.register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    finally:
        block._forward_hooks.clear()


@mistake("14.5", "replaces_outer", points=16)
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[number]
    block.forward = lambda x, cache=None: type(block).forward(block, x, cache) + strength * direction
    try:
        yield
    finally:
        vars(block).pop("forward", None)


@mistake("14.5", "ignores_inner", points=17)
@contextmanager
def steering(model, number, direction, strength, active=[]):  # noqa: B006
    if number in active:
        yield
        return
    active.append(number)
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
        try:
            yield
        finally:
            active.remove(number)


@mistake("14.5", "takes_outer_off", points=17)
@contextmanager
def steering(model, number, direction, strength, handles=[]):  # noqa: B006
    handles.append(
        model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    )
    try:
        yield
    finally:
        handles.pop(0).remove()


@mistake("14.5", "takes_outer_off", points=17)
@contextmanager
def steering(model, number, direction, strength, handles=[]):  # noqa: B006
    handles.append(
        model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    )
    try:
        yield
    finally:
        while handles:
            handles.pop().remove()


@mistake("14.5", "inner_stays", points=17)
@contextmanager
def steering(model, number, direction, strength, handles=[]):  # noqa: B006
    handles.append(
        model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    )
    outermost = len(handles) == 1
    try:
        yield
    finally:
        while outermost and handles:
            handles.pop().remove()


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


@mistake("14.5", "changes_direction", points=15)
@contextmanager
def steering(model, number, direction, strength):
    direction *= strength
    with model.blocks[number].register_forward_hook(lambda m, args, out: out + direction):
        yield


@mistake("14.5", "changes_weights", points=13)
@contextmanager
def steering(model, number, direction, strength):
    bias = model.blocks[number].mlp[2].bias
    with torch.no_grad():
        bias += strength * direction
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


@mistake("14.5", "no_finally", points=17)
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    try:
        yield
    except RuntimeError:
        handle.remove()
        raise
    handle.remove()


@mistake("14.5", "attributes", points=17)
@contextmanager
def steering(model, number, direction, strength):
    block = model.blocks[number]
    forward = block.forward
    block.forward = lambda *args: forward(*args) + strength * direction
    try:
        yield
    finally:
        block.forward = forward


@mistake("14.5", "mode", points=17)
@contextmanager
def steering(model, number, direction, strength):
    was = model.training
    model.eval()
    try:
        with model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction):
            yield
    finally:
        model.train(was)


@mistake("14.5", "changes_weights", points=16)
@contextmanager
def steering(model, number, direction, strength):
    bias = model.blocks[number].mlp[2].bias
    with torch.no_grad():
        bias.add_(strength * direction)
    try:
        yield
    finally:
        with torch.no_grad():
            bias.sub_(strength * direction)


@mistake("14.5", "in_place", points=17)
@contextmanager
def steering(model, number, direction, strength):
    def add(module, args, output):
        with torch.no_grad():
            output += strength * direction

    with model.blocks[number].register_forward_hook(add):
        yield


@unnamed("14.5", "others", points=15)
@contextmanager
def steering(model, number, direction, strength):
    kept = []

    def add(module, args, output):
        if not kept:
            kept.append(output + strength * direction)
        return kept[0]

    with model.blocks[number].register_forward_hook(add):
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


# The handle of the inner one takes the place of that of the outer one.
@mistake("14.5", "outer_stays", points=16)
@contextmanager
def steering(model, number, direction, strength):
    steering.handle = model.blocks[number].register_forward_hook(
        lambda m, args, out: out + strength * direction
    )
    try:
        yield
    finally:
        steering.handle.remove()


@mistake("14.5", "no_finally", points=17)
@contextmanager
def steering(model, number, direction, strength):
    handle = model.blocks[number].register_forward_hook(lambda m, args, out: out + strength * direction)
    yield
    handle.remove()
