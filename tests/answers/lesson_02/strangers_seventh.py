"""What the seventh strangers tried on lesson 02: wrong answers that had been accepted."""

from contextlib import contextmanager

from tests.answers import mistake


@mistake("02.4", "swallows_error", points=4)
class Watching:
    def __init__(self, tensors):
        self.tensors = tensors

    def __enter__(self):
        seen, self.handles = {}, []
        for name, tensor in self.tensors.items():
            if tensor.requires_grad:
                keep = lambda grad, name=name: seen.update({name: grad})  # noqa: E731
                self.handles.append(tensor.register_hook(keep))
        return seen

    def __exit__(self, kind, error, trace):
        for handle in self.handles:
            handle.remove()
        return kind is RuntimeError


@mistake("02.4", "swallows_error", points=4)
@contextmanager
def watching(tensors):
    seen, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    try:
        yield seen
    except ValueError as error:
        print("ignored:", error)
    finally:
        for handle in handles:
            handle.remove()
