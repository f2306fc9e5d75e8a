"""Right answers to the exercises of lesson 02 in further styles."""

import weakref
from collections import OrderedDict, defaultdict, deque
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, closing, contextmanager
from functools import partial, partialmethod, reduce, singledispatch, wraps

import torch

from tests.answers import alternative


@alternative("02.1")
def watch(y, seen):
    return torch.Tensor.register_hook(y, partial(list.append, seen))


@alternative("02.1")
def watch(y, seen):
    def keep(grad):
        seen[len(seen) :] = [grad]

    return (handle := y.register_hook(keep))  # noqa: F841


@alternative("02.1")
def watch(y, seen):
    def silent(function):
        @wraps(function)
        def wrapped(grad):
            function(grad)

        return wrapped

    @silent
    def keep(grad):
        seen.append(torch.from_numpy(grad.numpy().copy()))
        return "dropped by the decorator"

    return y.register_hook(keep)


@alternative("02.1")
def watch(y, seen):
    def keep(grad, *, to=seen):
        to += [grad]

    return y.register_hook(keep)


@alternative("02.1")
def watch(y, seen):
    def receiver():
        for _ in range(1000):
            seen.append((yield))

    send = receiver()
    next(send)
    return y.register_hook(lambda grad: send.send(grad))


@alternative("02.1")
def watch(y, seen):
    class Bound:
        def keep(self, where, grad):
            where.append(grad)

        into = partialmethod(keep, seen)

    return y.register_hook(Bound().into)


@alternative("02.1")
def watch(y, seen):
    def keep(grad):
        seen.extend((grad.clone(),))
        return grad.clone()  # an equal gradient

    return y.register_hook(keep)


@alternative("02.2")
def watch_many(tensors, seen):
    class Handles(list):
        def watch(self, name, tensor):
            self.append(tensor.register_hook(partial(seen.__setitem__, name)))

    handles = Handles()
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.watch(name, tensor)
    return handles


@alternative("02.2")
def watch_many(tensors, seen):
    class Keeper:
        def __init__(self, name):
            self.name = name

        def __call__(self, grad):
            seen[self.name] = grad

    needed = filter(lambda name: tensors[name].requires_grad, tensors)
    return [tensors[name].register_hook(Keeper(name)) for name in needed]


@alternative("02.2")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        try:
            handles.append(tensor.register_hook(lambda grad, key=name: seen.update({key: grad.detach()})))
        except RuntimeError:
            continue
    return handles


@alternative("02.2")
def watch_many(tensors, seen):
    def watch(name):
        return tensors[name].register_hook(lambda grad: operator_set(name, grad))

    def operator_set(name, grad):
        seen[name] = grad

    return [watch(name) for name, tensor in sorted(tensors.items()) if tensor.requires_grad]


@alternative("02.2")
def watch_many(tensors, seen):
    def add(handles, item):
        name, tensor = item
        return (
            handles + [tensor.register_hook(partial(seen.__setitem__, name))]
            if tensor.requires_grad
            else handles
        )

    return reduce(add, tensors.items(), [])


@alternative("02.2")
def watch_many(tensors, seen):
    def handles():
        for name, tensor in tensors.items():
            if not tensor.requires_grad:
                continue

            def keep(grad, name=name):
                seen.pop(name, None)
                seen[name] = grad

            yield tensor.register_hook(keep)

    return list(handles())


@alternative("02.2")
def watch_many(tensors, seen):
    by_name = defaultdict(list)
    for name in reversed(tensors):
        if tensors[name].grad_fn is not None or tensors[name].requires_grad:
            by_name[name].append(
                tensors[name].register_hook((lambda n: lambda g: seen.update([(n, g)]))(name))
            )
    return [handle for handles in by_name.values() for handle in handles]


@alternative("02.2")
def watch_many(tensors, seen):
    @singledispatch
    def keep(grad, name):
        seen.__setitem__(name, grad)

    names, handles = deque(tensors), []
    while names:
        tensor = tensors[name := names.popleft()]
        if tensor.requires_grad:
            handles += [tensor.register_hook(partial(keep, name=name))]
    return handles


@alternative("02.3")
def observe_once(y, seen):
    handle = None

    def keep(grad):
        nonlocal handle
        seen.append(grad)
        handle.remove()
        handle = None

    handle = y.register_hook(keep)
    return handle


@alternative("02.3")
def observe_once(y, seen):
    def keep(grad):
        with keep.handle:
            seen.append(grad)

    keep.handle = y.register_hook(keep)
    return keep.handle


@alternative("02.3")
def observe_once(y, seen):
    box = {}

    def keep(grad):
        try:
            seen.append(grad.detach().clone())
        finally:
            box.pop("handle").remove()

    return box.setdefault("handle", y.register_hook(keep))


@alternative("02.3")
def observe_once(y, seen):
    def once():
        seen.append((yield))
        handle.remove()
        yield

    keep = once()
    next(keep)
    handle = y.register_hook(lambda grad: keep.send(grad))
    return handle


@alternative("02.3")
def observe_once(y, seen):
    stack = ExitStack()

    def keep(grad):
        with stack:
            seen.append(grad)

    return stack.enter_context(y.register_hook(keep))


@alternative("02.3")
def observe_once(y, seen):
    def keep(grad, seen=seen, own=[]):  # a list for each call: the def runs each time
        if not own:
            own.append(grad)
            seen += own
        reference().remove()

    handle = y.register_hook(keep)
    reference = weakref.ref(handle)
    keep.handle = handle
    return handle


@alternative("02.4")
class Watching(AbstractContextManager):
    def __init__(self, tensors):
        self._tensors = {n: t for n, t in tensors.items() if t.requires_grad}

    def __enter__(self):
        seen = {}
        self._handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in self._tensors.items()]
        return seen

    def __exit__(self, kind, error, trace):
        [handle.remove() for handle in self._handles]
        return False


@alternative("02.4")
class StackOfHooks(ExitStack):
    def __init__(self, tensors):
        super().__init__()
        self.tensors = tensors

    def __enter__(self):
        super().__enter__()
        seen = OrderedDict()
        for name, tensor in self.tensors.items():
            if tensor.requires_grad:
                self.callback(tensor.register_hook(partial(seen.__setitem__, name)).remove)
        return seen


@alternative("02.4")
@contextmanager
def watching(tensors):
    def watch(items, seen):
        if not items:
            yield seen
            return
        (name, tensor), *rest = items
        if not tensor.requires_grad:
            yield from watch(rest, seen)
        else:
            with tensor.register_hook(partial(seen.__setitem__, name)):
                yield from watch(rest, seen)

    yield from watch([*tensors.items()], {})


@alternative("02.4")
@contextmanager
def watching(tensors):
    seen, handles = defaultdict(lambda: None), []
    try:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                handles.append(
                    tensor.register_hook(lambda grad, name=name: seen.update({name: grad.clone()}))
                )
        yield seen
    except BaseException:
        for handle in handles:
            handle.remove()
        raise
    else:
        for handle in handles:
            handle.remove()


@alternative("02.4")
class Decorator(ContextDecorator):
    def __init__(self, tensors):
        self.tensors, self.seen = tensors, None

    def keep(self, name):
        def keep(grad):
            self.seen[name] = grad

        return keep

    def __enter__(self):
        self.seen = {}
        self.handles = {n: t.register_hook(self.keep(n)) for n, t in self.tensors.items() if t.requires_grad}
        return self.seen

    def __exit__(self, *exc_info):
        for handle in self.handles.values():
            handle.remove()


@alternative("02.4")
def watching(tensors):
    @contextmanager
    def manager():
        seen, on = {}, ExitStack()
        with closing(on):
            for name in tensors:
                if tensors[name].requires_grad:
                    on.enter_context(tensors[name].register_hook(partial(seen.__setitem__, name)))
            yield seen

    return manager()


@alternative("02.4")
@contextmanager
def watching(tensors):
    class Seen(dict):
        def keeper(self, name):
            return lambda grad: self.update({name: grad})

    seen = Seen()
    handles = [t.register_hook(seen.keeper(n)) for n, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.__exit__(None, None, None)
