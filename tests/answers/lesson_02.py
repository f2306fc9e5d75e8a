"""Right and wrong answers to the exercises of lesson 02."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from tests.answers import alternative, mistake, unnamed

# --- 02.1 ---------------------------------------------------------------------------------------------------


@alternative("02.1")
def watch(y, seen):
    return y.register_hook(seen.append)


@alternative("02.1")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.detach().clone()))


@alternative("02.1")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)
        return grad  # the same tensor: nothing changes

    handle = y.register_hook(keep)
    return handle


@alternative("02.1")
def watch(y, seen):
    class Keeper:
        def __call__(self, grad):
            seen.extend([grad])

    return y.register_hook(Keeper())


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    y.register_hook(seen.append)


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    def keep(grad):
        seen.append(grad)

    y.register_hook(keep)
    return keep


@mistake("02.1", "asks_too_early")
def watch(y, seen):
    seen.append(y.grad)


@mistake("02.1", "runs_backward")
def watch(y, seen):
    handle = y.register_hook(seen.append)
    y.sum().backward(retain_graph=True)
    return handle


@mistake("02.1", "reads_dot_grad")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(y.grad))


@mistake("02.1", "rebinds_list")
def watch(y, seen):
    def keep(grad):
        seen = [grad]

    return y.register_hook(keep)


@mistake("02.1", "not_registered")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)

    return keep


@mistake("02.1", "not_registered")
def watch(y, seen):
    pass


@mistake("02.1", "watches_a_copy")
def watch(y, seen):
    y = y.detach().requires_grad_()
    return y.register_hook(seen.append)


@mistake("02.1", "watches_a_copy")
def watch(y, seen):
    return y.clone().register_hook(seen.append)


@mistake("02.1", "keeps_a_summary")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.mean().item()))


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    def keep(grad):
        seen.append(grad.clone())
        grad.zero_()

    return y.register_hook(keep)


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)
        return 2 * grad

    return y.register_hook(keep)


@mistake("02.1", "calls_now")
def watch(y, seen):
    def keep(grad):
        pass

    return y.register_hook(keep(y))


@mistake("02.1", "no_argument")
def watch(y, seen):
    def keep():
        seen.append(y.grad)

    return y.register_hook(keep)


@mistake("02.1", "retains_grad")
def watch(y, seen):
    y.retain_grad()
    return y.register_hook(lambda grad: seen.append(y.grad))


@mistake("02.1", "keeps_the_last")
def watch(y, seen):
    def keep(grad):
        seen.clear()
        seen.append(grad)

    return y.register_hook(keep)


@mistake("02.1", "keeps_the_last")
def watch(y, seen):
    def keep(grad):
        seen[:] = [grad]

    return y.register_hook(keep)


# --- 02.2 ---------------------------------------------------------------------------------------------------


@alternative("02.2")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    return handles


@alternative("02.2")
def watch_many(tensors, seen):
    return [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]


@alternative("02.2")
def watch_many(tensors, seen):
    def keeper(name):
        def keep(grad):
            seen[name] = grad.clone()

        return keep

    return tuple(t.register_hook(keeper(n)) for n, t in tensors.items() if t.requires_grad)


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in list(tensors.items())[:3]:
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    return handles


@mistake("02.2", "late_binding")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:

            def keep(grad):
                seen[name] = grad

            handles.append(tensor.register_hook(keep))
    return handles


@mistake("02.2", "late_binding")
def watch_many(tensors, seen):
    return [
        t.register_hook(lambda g: seen.update({name: g})) for name, t in tensors.items() if t.requires_grad
    ]


@mistake("02.2", "returns_in_loop")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
        return handles


@mistake("02.2", "hooks_everything")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()]


@mistake("02.2", "rebinds_dict")
def watch_many(tensors, seen):
    def keep(grad, name):
        seen = {name: grad}

    return [t.register_hook(partial(keep, name=n)) for n, t in tensors.items() if t.requires_grad]


@mistake("02.2", "wrong_keys")
def watch_many(tensors, seen):
    handles = []
    for i, tensor in enumerate(tensors.values()):
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, i)))
    return handles


@mistake("02.2", "wrong_keys")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, t)) for t in tensors.values() if t.requires_grad]


@mistake("02.2", "one_handle", points=2)
def watch_many(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handle = tensor.register_hook(partial(seen.__setitem__, name))
    return handle


@mistake("02.2", "no_handle", points=2)
def watch_many(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))


@mistake("02.2", "changes_gradient")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad
        return grad / grad.norm()

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "calls_now")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad

    return [t.register_hook(keep(name, t.grad)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "two_arguments")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad

    return [t.register_hook(keep) for t in tensors.values() if t.requires_grad]


@mistake("02.2", "skips_leaves")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if not t.is_leaf]


@mistake("02.2", "keeps_the_first")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen.setdefault(name, grad)

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "changes_gradient")
def watch_many(tensors, seen):
    handles = []
    for name, t in tensors.items():
        if t.requires_grad:  # setdefault() returns the old gradient, which replaces the new one
            handles.append(t.register_hook(lambda grad, name=name: seen.setdefault(name, grad)))
    return handles


@mistake("02.2", "adds_up")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = seen.get(name, 0) + grad

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "switches_on")
def watch_many(tensors, seen):
    return [t.requires_grad_().register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()]


@mistake("02.2", "none_in_list", points=2)
def watch_many(tensors, seen):
    return [
        t.register_hook(partial(seen.__setitem__, name)) if t.requires_grad else None
        for name, t in tensors.items()
    ]


# --- 02.3 ---------------------------------------------------------------------------------------------------


@alternative("02.3")
def observe_once(y, seen):
    handle = y.register_hook(lambda grad: (seen.append(grad), handle.remove()) and None)
    return handle


@alternative("02.3")
def observe_once(y, seen):
    handles = []

    def keep(grad):
        seen.append(grad.clone())
        for handle in handles:
            handle.remove()

    handles.append(y.register_hook(keep))
    return handles[0]


@alternative("02.3")
def observe_once(y, seen):
    class Once:
        def __call__(self, grad):
            self.handle.remove()
            seen.append(grad)

    once = Once()
    once.handle = y.register_hook(once)
    return once.handle


@mistake("02.3", "asks_too_early")
def observe_once(y, seen):
    seen.append(y.grad)


@mistake("02.3", "removes_at_once")
def observe_once(y, seen):
    handle = y.register_hook(seen.append)
    handle.remove()
    return handle


@mistake("02.3", "removes_at_once")
def observe_once(y, seen):
    with y.register_hook(seen.append) as handle:
        return handle


@mistake("02.3", "keeps_nothing")
def observe_once(y, seen):
    def keep(grad):
        seen = [grad]
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "never_removes")
def observe_once(y, seen):
    return y.register_hook(seen.append)


@mistake("02.3", "only_ignores", points=3)
def observe_once(y, seen):
    done = []

    def keep(grad):
        if not done:
            seen.append(grad)
            done.append(True)

    return y.register_hook(keep)


@mistake("02.3", "asks_seen")
def observe_once(y, seen):
    def keep(grad):
        if not seen:
            seen.append(grad)

    return y.register_hook(keep)


@mistake("02.3", "asks_seen")
def observe_once(y, seen):
    def keep(grad):
        if not seen:
            seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "overwrites")
def observe_once(y, seen):
    def keep(grad):
        seen[:] = [grad]
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "cancels_half", points=3)
def observe_once(y, seen):
    def take_off(grad):
        watcher.remove()
        remover.remove()

    watcher = y.register_hook(seen.append)
    remover = y.register_hook(take_off)
    return watcher


@mistake("02.3", "cancels_half", points=3)
def observe_once(y, seen):
    def take_off(grad):
        watcher.remove()
        remover.remove()

    watcher = y.register_hook(seen.append)
    remover = y.register_hook(take_off)
    return remover


@mistake("02.3", "clears_everybody")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        y._backward_hooks.clear()

    return y.register_hook(keep)


@mistake("02.3", "shared_flag")
def observe_once(y, seen, done=[]):
    def keep(grad):
        if not done:
            seen.append(grad)
            done.append(True)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "returns_a_tuple")
def observe_once(y, seen):
    handle = y.register_hook(lambda grad: (seen.append(grad), handle.remove()))
    return handle


@mistake("02.3", "no_argument")
def observe_once(y, seen):
    def keep():
        seen.append(y)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "calls_now")
def observe_once(y, seen):
    handle = y.register_hook(seen.clear())
    return handle


@mistake("02.3", "handle_not_kept")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()  # noqa: F821

    return y.register_hook(keep)


@mistake("02.3", "no_handle", points=3)
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)


@mistake("02.3", "changes_gradient")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()
        return torch.zeros_like(grad)

    handle = y.register_hook(keep)
    return handle


# --- 02.4 ---------------------------------------------------------------------------------------------------


@alternative("02.4")
class AsClass:
    def __init__(self, tensors):
        self.tensors, self.seen, self.handles = tensors, {}, []

    def __enter__(self):
        for name, tensor in self.tensors.items():
            if tensor.requires_grad:
                self.handles.append(tensor.register_hook(partial(self.seen.__setitem__, name)))
        return self.seen

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


@alternative("02.4")
@contextmanager
def watching(tensors):
    seen = {}
    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
        yield seen


@mistake("02.4", "not_a_manager")
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "not_a_manager")
def watching(tensors):
    seen = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))
    return seen


@mistake("02.4", "yields_nothing")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "yields_something_else")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield handles
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "not_on_inside")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    for handle in handles:
        handle.remove()
    yield seen


@mistake("02.4", "never_removes", points=3)
@contextmanager
def watching(tensors):
    seen = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))
    yield seen


@mistake("02.4", "no_finally", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    yield seen
    for handle in handles:
        handle.remove()


@mistake("02.4", "swallows_error", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield seen
    except Exception:
        print("something went wrong")
    for handle in handles:
        handle.remove()


@mistake("02.4", "exit_signature")
class ExitWithoutArguments:
    def __init__(self, tensors):
        self.tensors, self.seen = tensors, {}

    def __enter__(self):
        self.handles = [
            t.register_hook(partial(self.seen.__setitem__, n))
            for n, t in self.tensors.items()
            if t.requires_grad
        ]
        return self.seen

    def __exit__(self):
        for handle in self.handles:
            handle.remove()


@mistake("02.4", "late_binding")
@contextmanager
def watching(tensors):
    seen, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad: seen.update({name: grad})))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "changes_gradient")
@contextmanager
def watching(tensors):
    seen = {}

    def keep(grad, name):
        seen[name] = grad
        return grad * 0

    handles = [t.register_hook(partial(keep, name=n)) for n, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "shared_dict")
@contextmanager
def watching(tensors, seen={}):
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "shared_dict")
@contextmanager
def watching(tensors, seen={}):
    seen.clear()
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "clears_everybody")
@contextmanager
def watching(tensors):
    seen = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))
    try:
        yield seen
    finally:
        for tensor in tensors.values():
            if tensor.requires_grad:
                tensor._backward_hooks.clear()


@mistake("02.4", "hooks_everything")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "skips_leaves")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if not t.is_leaf
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "switches_on")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.requires_grad_().register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
