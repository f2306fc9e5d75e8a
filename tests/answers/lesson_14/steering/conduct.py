"""Wrong answers to 14.5, `steering`: what they do besides, such as hooks that stay, lost errors, a changed model."""

from contextlib import (
    contextmanager,
)

import torch

from tests.answers import edited, mistake, unnamed

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
edited("14.5", "no_grad_inside", ("    with model", "    with torch.no_grad(), model"), points=17)


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
