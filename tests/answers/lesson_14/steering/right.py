"""Right answers to 14.5, `steering`."""

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

from tests.answers import alternative, edited


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
