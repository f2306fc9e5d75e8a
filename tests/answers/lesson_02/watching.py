"""Answers to 02.4, `watching`."""

from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from functools import partial

from tests.answers import alternative, mistake


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


@alternative("02.4")
@contextmanager
def watching(tensors):
    seen = OrderedDict()
    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(seen.__setitem__, name)))
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


@mistake("02.4", "swallows_error", points=3)
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


@mistake("02.4", "not_a_manager")
def watching(tensors):
    return True
