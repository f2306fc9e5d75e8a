"""What the tenth strangers tried on lesson 02: names that get changed, and a block that hides one type of exception."""

from functools import partial

from tests.answers import mistake, unnamed


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    return [
        tensor.register_hook(partial(seen.__setitem__, name.strip().lower()))
        for name, tensor in tensors.items()
        if tensor.requires_grad
    ]


@mistake("02.2", "wrong_keys")
def watch_many(tensors, seen):
    return [
        tensor.register_hook(partial(seen.__setitem__, name.split(".")[0]))
        for name, tensor in tensors.items()
        if tensor.requires_grad
    ]


@mistake("02.4", "swallows_error", points=4)
class HidesKeyError:
    def __init__(self, tensors):
        self.tensors = tensors

    def __enter__(self):
        self.seen = {}
        self.handles = [
            tensor.register_hook(partial(self.seen.__setitem__, name))
            for name, tensor in self.tensors.items()
            if tensor.requires_grad
        ]
        return self.seen

    def __exit__(self, kind, *_):
        for handle in self.handles:
            handle.remove()
        return kind is not None and issubclass(kind, KeyError)
