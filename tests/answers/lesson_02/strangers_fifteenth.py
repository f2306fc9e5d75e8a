"""Answers to lesson 02 of strangers who had not read the checks, in their fifteenth round."""

from contextlib import contextmanager

from tests.answers import mistake


# A hook that hands on what it has kept: PyTorch makes it the .grad of a leaf and adds to it in place.
@mistake("02.1", "returns_alias")
def watch(y, seen):
    def hook(grad):
        seen.append(grad)
        return grad.detach()

    return y.register_hook(hook)


@mistake("02.1", "cuts_graph")
def watch(y, seen):
    def hook(grad):
        seen.append(grad.clone())
        return grad.detach()

    return y.register_hook(hook)


@mistake("02.2", "returns_alias")
def watch_many(tensors, seen):
    def keep(name):
        def hook(grad):
            seen[name] = grad
            return grad[...]

        return hook

    return [tensor.register_hook(keep(name)) for name, tensor in tensors.items() if tensor.requires_grad]


@mistake("02.3", "returns_alias")
def observe_once(y, seen):
    def hook(grad):
        seen.append(grad)
        handle.remove()
        return grad.detach()

    handle = y.register_hook(hook)
    return handle


@mistake("02.4", "returns_alias")
@contextmanager
def watching(tensors):
    seen = {}

    def keep(name):
        def hook(grad):
            seen[name] = grad
            return grad.view_as(grad)

        return hook

    handles = [t.register_hook(keep(name)) for name, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
