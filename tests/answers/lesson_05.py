"""Right and wrong answers to the exercises of lesson 05."""

from collections import defaultdict
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from tests.answers import alternative, mistake

# --- 05.1 ---------------------------------------------------------------------------------------------------


@alternative("05.1")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@alternative("05.1")
def capture(module, seen):
    def keep(module, args, output):
        (x,) = args
        seen.append([x.detach().clone(), output.detach().clone()])
        return output

    return module.register_forward_hook(keep)


@alternative("05.1")
def capture(module, seen):
    def keep(module, args, kwargs, output):
        seen.append((*args, output))

    handle = module.register_forward_hook(keep, with_kwargs=True)
    return handle


@mistake("05.1", "keeps_the_tuple")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args, output))

    return module.register_forward_hook(keep)


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append(output))


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    def keep(module, args, output):
        seen.append(args[0])
        seen.append(output)

    return module.register_forward_hook(keep)


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((module, args[0], output))

    return module.register_forward_hook(keep)


@mistake("05.1", "wrong_order")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append((output, args[0])))


@mistake("05.1", "rebinds_list")
def capture(module, seen):
    def keep(module, args, output):
        seen = [(args[0], output)]

    return module.register_forward_hook(keep)


@mistake("05.1", "not_registered")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))

    return keep


@mistake("05.1", "too_early")
def capture(module, seen):
    x = torch.ones(1, 1, 4, 4)
    seen.append((x, module(x)))


@mistake("05.1", "changes_output")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))
        return output / output.max()

    return module.register_forward_hook(keep)


@mistake("05.1", "pre_hook")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))

    return module.register_forward_pre_hook(keep)


@mistake("05.1", "calls_again")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], module(args[0])))

    return module.register_forward_hook(keep)


@mistake("05.1", "returns_tuple")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: (seen.append((args[0], output)), output))


@mistake("05.1", "returns_tuple")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: [seen.append((args[0], output)), output])


@mistake("05.1", "cuts_gradient")
def capture(module, seen):
    def keep(module, args, output):
        output = output.detach()
        seen.append((args[0], output))
        return output

    return module.register_forward_hook(keep)


@mistake("05.1", "calls_now")
def capture(module, seen):
    return module.register_forward_hook(seen.extend([]))


@mistake("05.1", "wrong_arguments")
def capture(module, seen):
    def keep(output):
        seen.append(output)

    return module.register_forward_hook(keep)


@mistake("05.1", "wrong_arguments")
def capture(module, seen):
    return module.register_forward_hook(lambda args, output: seen.append((args[0], output)))


@mistake("05.1", "no_handle", points=2)
def capture(module, seen):
    module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


# --- 05.2 ---------------------------------------------------------------------------------------------------


@alternative("05.2")
def prove(model, x, skip):
    seen = []
    with ExitStack() as stack:
        for child in model.children():
            if type(child) is not skip:
                stack.enter_context(
                    child.register_forward_hook(
                        lambda module, args, output: seen.append((module._get_name(), output))
                    )
                )
        _, returned = model(x)
    return [(name, float(torch.max(torch.abs(a - b)))) for (name, a), b in zip(seen, returned, strict=True)]


@alternative("05.2")
def prove(model, x, skip):
    names, outputs, handles = [], [], []

    def keep(module, args, output):
        names.append(type(module).__name__)
        outputs.append(output.detach())

    for name, child in model.named_children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(keep))
    try:
        out, returned = model.forward(x)
    finally:
        for handle in handles:
            handle.remove()
    return [[n, (o - r).abs().max()] for n, o, r in zip(names, outputs, returned)]


@mistake("05.2", "ignores_skip")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        handles.append(
            child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
        )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "order_of_children")
def prove(model, x, skip):
    seen, handles = {}, []
    children = [child for child in model.children() if not isinstance(child, skip)]
    for child in children:
        handles.append(child.register_forward_hook(lambda m, args, output: seen.update({m: output})))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(type(c).__name__, (seen[c] - own).abs().max().item()) for c, own in zip(children, returned)]


@mistake("05.2", "late_binding")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(
                    lambda m, args, output: seen.append((type(child).__name__, output))
                )
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "no_entries")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    for handle in handles:
        handle.remove()
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "no_entries")
def prove(model, x, skip):
    out, returned = model(x)
    seen = []
    for child in model.children():
        with child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output))):
            pass
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "returns_nothing")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    difference = [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "always_zero")
def prove(model, x, skip):
    return [("Linear", 0.0), ("Linear", 0.0), ("ReLU", 0.0)]


@mistake("05.2", "always_zero")
def prove(model, x, skip):
    first, second, handles = [], [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, args, output: first.append((m, output))))
            handles.append(child.register_forward_hook(lambda m, args, output: second.append(output)))
    model(x)
    for handle in handles:
        handle.remove()
    return [(type(m).__name__, (a - b).abs().max().item()) for (m, a), b in zip(first, second)]


@mistake("05.2", "signed")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "signed")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (own - output).max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_the_largest")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().mean().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_a_number")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "leaves_hooks", points=3)
def prove(model, x, skip):
    seen = []
    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "output_and_list")
def prove(model, x, skip):
    seen = []
    with ExitStack() as stack:
        for child in model.children():
            if not isinstance(child, skip):
                stack.enter_context(
                    child.register_forward_hook(lambda m, a, output: seen.append((type(m).__name__, output)))
                )
        returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "not_only_children")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.modules():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "too_many")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.modules():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [
        (name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned, strict=True)
    ]


@mistake("05.2", "runs_twice", points=3)
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    model(x)
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "runs_twice", points=3)
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(
                child.register_forward_hook(lambda m, args, output: seen.append((type(m).__name__, output)))
            )
    model(x)
    for handle in handles:
        handle.remove()
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


@mistake("05.2", "calls_now")
def prove(model, x, skip):
    def keep(module, args=None, output=None):
        pass

    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(keep(child))
    return model(x)


@mistake("05.2", "wrong_arguments")
def prove(model, x, skip):
    seen = []
    for child in model.children():
        if not isinstance(child, skip):
            child.register_forward_hook(lambda module, output: seen.append((type(module).__name__, output)))
    out, returned = model(x)
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]


# --- 05.3 ---------------------------------------------------------------------------------------------------


@alternative("05.3")
class AsClass:
    def __init__(self, model, names):
        self.modules = {name: model.get_submodule(name) for name in names}  # raises before any hook is on

    def __enter__(self):
        self.seen, self.handles = {}, []
        for name, module in self.modules.items():
            self.handles.append(module.register_forward_hook(self.keeper(name)))
        return self.seen

    def keeper(self, name):
        def keep(module, args, output):
            self.seen[name] = output.detach().clone()

        return keep

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


@alternative("05.3")
@contextmanager
def extracting(model, names):
    seen, modules = {}, dict(model.named_modules())
    with ExitStack() as stack:
        for name in names:

            def keep(module, args, output, name=name):
                seen[name] = output.detach()

            stack.enter_context(modules[name].register_forward_hook(keep))
        yield seen


@alternative("05.3")
@contextmanager
def extracting(model, names):
    known = [name for name, _ in model.named_modules()]
    for name in names:
        if name not in known:
            raise ValueError(name)
    seen = {}
    handles = [
        model.get_submodule(n).register_forward_hook(lambda m, a, o, n=n: seen.update({n: o.detach()}))
        for n in names
    ]
    try:
        yield seen
    finally:
        [handle.remove() for handle in handles]


@alternative("05.3")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen.setdefault(name, output.detach())

    with torch.no_grad():
        try:
            for name in names:
                handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
            yield seen
        finally:
            for handle in handles:
                handle.remove()


@mistake("05.3", "not_a_manager")
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "yields_nothing")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "yields_something_else")
@contextmanager
def extracting(model, names):
    seen, handles = [], []
    try:
        for name in names:
            handles.append(
                model.get_submodule(name).register_forward_hook(lambda m, a, o: seen.append(o.detach()))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "not_on_inside")
@contextmanager
def extracting(model, names):
    seen = {}
    for name in names:
        module = model.get_submodule(name)
        with module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()})):
            pass
    yield seen


@mistake("05.3", "wrong_keys")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            handles.append(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, o: seen.update({type(m).__name__: o.detach()})
                )
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "dotted_name")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = getattr(model, name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "only_children")
@contextmanager
def extracting(model, names):
    seen, handles, children = {}, [], dict(model.named_children())
    try:
        for name in names:
            handles.append(
                children[name].register_forward_hook(
                    lambda m, a, o, name=name: seen.update({name: o.detach()})
                )
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "changes_output")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()
        return torch.zeros_like(output)

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "never_removes", points=5)
@contextmanager
def extracting(model, names):
    seen = {}
    for name in names:
        model.get_submodule(name).register_forward_hook(
            lambda m, a, o, name=name: seen.update({name: o.detach()})
        )
    yield seen


@mistake("05.3", "no_finally", points=6)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
        )
    yield seen
    for handle in handles:
        handle.remove()


@mistake("05.3", "leaves_on_bad_name", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
        )
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "ignores_bad_name", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name, module in model.named_modules():
            if name in names:
                handles.append(
                    module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
                )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "swallows_error", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    except ArithmeticError:
        raise
    except AttributeError:
        raise
    except Exception as error:
        print("something went wrong:", error)
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "late_binding")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda m, a, o: seen.update({name: o.detach()})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "attached", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "removes_others", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for module in model.modules():
            module._forward_hooks.clear()


@mistake("05.3", "cuts_gradient")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.setdefault(name, o.detach()))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "cuts_gradient")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()
        return seen[name]

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "yields_in_loop")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
            yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "returns_tuple")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: (seen.update({name: o.detach()}), o))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "wrong_arguments")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda output: seen.update({name: output})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# --- 05.4 ---------------------------------------------------------------------------------------------------


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


# --- 05.5 ---------------------------------------------------------------------------------------------------


@alternative("05.5")
def every_call(model, x):
    seen = {name: [] for name, module in model.named_modules() if not [*module.children()]}
    with ExitStack() as stack:
        for name, kept in seen.items():

            def keep(module, args, output, kept=kept):
                kept.append(output.detach())

            stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
        model(x)
    return seen


@alternative("05.5")
def every_call(model, x):
    seen, training = {}, model.training
    with ExitStack() as stack, torch.no_grad():
        stack.callback(model.train, training)
        for name, module in model.eval().named_modules():
            if not list(module.children()):
                kept = seen[name] = []
                stack.enter_context(
                    module.register_forward_hook(lambda m, a, o, kept=kept: kept.append(o.detach()))
                )
        model(x)
    return seen


@alternative("05.5")
def every_call(model, x):
    names = {m: n for n, m in model.named_modules() if len(list(m.children())) == 0}
    seen = {name: [] for name in names.values()}

    def keep(module, args, output):
        seen[names[module]].append(output.detach().clone())

    handles = [module.register_forward_hook(keep) for module in names]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@alternative("05.5")
def every_call(model, x):
    seen, handles = defaultdict(list), []
    for name, module in model.named_modules():
        if not any(True for _ in module.children()):
            seen[name]
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "last_call_only")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: [o.detach()]}))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "last_call_only")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = None
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "first_call_only")
def every_call(model, x):
    seen, handles = {}, []

    def keep(name, module, args, output):
        if not seen[name]:
            seen[name].append(output.detach())

    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(partial(keep, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "shared_list")
def every_call(model, x):
    names = [name for name, module in model.named_modules() if not list(module.children())]
    seen, handles = dict.fromkeys(names, []), []
    for name in names:
        handles.append(
            model.get_submodule(name).register_forward_hook(
                lambda m, a, o, name=name: seen[name].append(o.detach())
            )
        )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "runs_again")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    out = model(x)
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "idle_missing")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(
                module.register_forward_hook(
                    lambda m, a, o, name=name: seen.setdefault(name, []).append(o.detach())
                )
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "containers_too")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        seen[name] = []
        handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "only_children")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_children():
        seen[name] = []
        handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "class_names")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[type(module).__name__] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o: seen[type(m).__name__].append(o.detach()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "returns_nothing")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    model(x)
    for handle in handles:
        handle.remove()


@mistake("05.5", "late_binding")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(lambda m, a, o: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "late_binding")
def every_call(model, x):
    seen, handles = defaultdict(list), []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(lambda m, a, o: seen[name].append(o.detach())))
    model(x)
    for handle in handles:
        handle.remove()
    return dict(seen)


@mistake("05.5", "leaves_hooks", points=6)
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
    model(x)
    return seen


@mistake("05.5", "attached", points=6)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o)))
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not module.children():
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if module.children() == []:
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "children_generator")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if len(module.children()) == 0:
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "no_finally", points=7)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    model(x)
    for handle in handles:
        handle.remove()
    return seen


@mistake("05.5", "removes_others", points=7)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
    return seen


@mistake("05.5", "forward_directly", points=7)
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model.forward(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "left_in_eval", points=7)
def every_call(model, x):
    seen, handles = {}, []
    model.eval()
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen[name].append(o.detach()))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "returns_tuple")
def every_call(model, x):
    seen, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: (seen[name].append(o.detach()), o))
            )
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "cuts_gradient")
def every_call(model, x):
    seen, handles = {}, []

    def keep(name, module, args, output):
        output = output.detach()
        seen[name].append(output)
        return output

    for name, module in model.named_modules():
        if not list(module.children()):
            seen[name] = []
            handles.append(module.register_forward_hook(partial(keep, name)))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "calls_now")
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        seen[name] = []
        module.register_forward_hook(seen[name].append(name))
    model(x)
    return seen


@mistake("05.5", "wrong_arguments")
def every_call(model, x):
    seen = {}
    for name, module in model.named_modules():
        seen[name] = []
        module.register_forward_hook(lambda output, name=name: seen[name].append(output))
    model(x)
    return seen
