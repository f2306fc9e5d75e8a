"""Answers to lesson 05 of strangers who had not read the checks, in their eleventh round: nested blocks."""

from contextlib import contextmanager

from tests.answers import unnamed


# Leaving the inner block takes off the hooks of the outer one.
@unnamed("05.3", "nested", points=7)
@contextmanager
def extracting(model, names, active={}):  # noqa: B006
    seen = {}
    try:
        for name in names:
            module = model.get_submodule(name)

            def keep(module, args, output, name=name):
                seen[name] = output.detach()

            active.setdefault(module, []).append(module.register_forward_hook(keep))
        yield seen
    finally:
        for handles in active.values():
            for handle in handles:
                handle.remove()
        active.clear()
