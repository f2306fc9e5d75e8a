"""Further wrong answers to 02.4, `watching`."""

from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from tests.answers import edited, mistake, unnamed


@mistake("02.4", "keeps_the_first")
@contextmanager
def watching(tensors):
    seen = {}
    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(
                    tensor.register_hook(lambda grad, n=name: (seen.setdefault(n, grad), None)[1])
                )
        yield seen


@mistake("02.4", "adds_up")
@contextmanager
def watching(tensors):
    seen = {}

    def keep(name, grad):
        seen[name] = seen.get(name, 0) + grad

    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(keep, name)))
        yield seen


@mistake("02.4", "registers_early", points=4)
class RegistersInInit:
    def __init__(self, tensors):
        self.seen = {}
        self.handles = [
            t.register_hook(partial(self.seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad
        ]

    def __enter__(self):
        return self.seen

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


@mistake("02.4", "catches_some", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    except Exception:
        for handle in handles:
            handle.remove()
        raise
    for handle in handles:
        handle.remove()


edited("02.4", "catches_some", ("except Exception:", "except RuntimeError:"), of=watching, points=4)


@mistake("02.4", "swallows_error", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        return


@mistake("02.4", "swallows_error", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(seen.__setitem__, name)))
        yield seen


@mistake("02.4", "swallows_error", points=4)
class ReturnsTrue:
    def __init__(self, tensors):
        self.tensors = tensors

    def __enter__(self):
        self.seen = {}
        self.handles = [
            t.register_hook(partial(self.seen.__setitem__, n))
            for n, t in self.tensors.items()
            if t.requires_grad
        ]
        return self.seen

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()
        return True


edited("02.4", "swallows_error", ("return True", "return self.seen"), of=ReturnsTrue, points=4)


@mistake("02.4", "no_yield")
@contextmanager
def watching(tensors):
    seen = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))
    return seen


@mistake("02.4", "no_yield")
@contextmanager
def watching(tensors):
    seen = {}
    if not seen:
        return
    yield seen


@mistake("02.4", "yields_twice")
@contextmanager
def watching(tensors):
    seen, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
            yield seen
    for handle in handles:
        handle.remove()


@mistake("02.4", "local_seen")
@contextmanager
def watching(tensors):
    seen, handles = {}, []

    def keep(name, grad):
        seen |= {name: grad}  # noqa: F823

    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(keep, name)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "shared_handles")
class HandlesOnTheClass:
    handles = []

    def __init__(self, tensors):
        self.tensors, self.seen = tensors, {}

    def __enter__(self):
        for name, tensor in self.tensors.items():
            if tensor.requires_grad:
                self.handles.append(tensor.register_hook(partial(self.seen.__setitem__, name)))
        return self.seen

    def __exit__(self, *error):
        while self.handles:
            self.handles.pop().remove()


@mistake("02.4", "shared_dict")
class SeenOnTheClass:
    seen = {}

    def __init__(self, tensors):
        self.tensors = tensors

    def __enter__(self):
        self.seen.clear()
        self.stack = ExitStack()
        for name, tensor in self.tensors.items():
            if tensor.requires_grad:
                self.stack.enter_context(tensor.register_hook(partial(self.seen.__setitem__, name)))
        return self.seen

    def __exit__(self, *error):
        self.stack.close()


@mistake("02.4", "not_on_inside")
@contextmanager
def watching(tensors):
    seen = {}
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    yield seen
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            seen[name] = tensor.grad


@unnamed("02.4", "newest")
@contextmanager
def watching(tensors):  # what it stores is the .grad of the leaf itself, which adds up
    seen = {}

    def keep(name, grad):
        seen[name] = grad

    def keep_leaf(name, leaf):
        seen[name] = leaf.grad

    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad and tensor.is_leaf:
                hook = partial(keep_leaf, name)
                stack.enter_context(tensor.register_post_accumulate_grad_hook(hook))
            elif tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(keep, name)))
        yield seen


@mistake("02.4", "keeps_nothing")
@contextmanager
def watching(tensors):
    seen = {}

    def keep(name, grad):
        seen = {name: grad}

    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(keep, name)))
        yield seen


@unnamed("02.4", "sees")
@contextmanager
def watching(tensors):
    seen = {}
    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(lambda grad, n=name: seen.update({n: grad.abs()})))
        yield seen


@unnamed("02.4", "sees")
@contextmanager
def watching(tensors):
    seen = {}
    with ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(
                    tensor.register_hook(lambda grad, n=name: seen.update({n: grad.double()}))
                )
        yield seen


@mistake("02.4", "never_removes", points=3)
@contextmanager
def watching(tensors):
    seen = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handle = tensor.register_hook(partial(seen.__setitem__, name))
    try:
        yield seen
    finally:
        handle.remove()


@mistake("02.4", "never_removes", points=3)
@contextmanager
def watching(tensors):
    seen, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
    try:
        yield seen
    finally:
        for handle in handles:
            handles.remove(handle) or handle.remove()


edited("02.4", "clears_everybody", ("handle.remove()", "handle.hooks_dict_ref().clear()"))
edited("02.4", "clears_everybody", ("handle.remove()", "handle.hooks_dict_ref().popitem()"))
edited(
    "02.4",
    "skips_zero",
    (
        "partial(seen.__setitem__, name)",
        "lambda grad, name=name: seen.update({name: grad} if grad.any() else {})",
    ),
)
edited("02.4", "changes_gradient", ("partial(seen.__setitem__, name)", "lambda grad: 0 * grad"))


@mistake("02.4", "replaces_error", points=4)
@contextmanager
def watching(tensors):
    seen = {}
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    except Exception as error:
        raise RuntimeError(f"failed: {error}") from error
    finally:
        for handle in handles:
            handle.remove()


edited("02.4", "sees", ("seen, handles = {}, []", "seen, handles = dict.fromkeys(tensors), []"), named=False)
