"""Answers to lesson 02 of strangers who had not read the checks, in their eleventh round."""

from contextlib import contextmanager

from tests.answers import unnamed


# Nothing can be read after an exception in the block.
@unnamed("02.4", "after_error")
@contextmanager
def watching(tensors):
    seen = {}
    handles = [
        t.register_hook(lambda grad, n=name: seen.__setitem__(n, grad))
        for name, t in tensors.items()
        if t.requires_grad
    ]
    try:
        yield seen
    except BaseException:
        seen.clear()
        raise
    finally:
        for handle in handles:
            handle.remove()
