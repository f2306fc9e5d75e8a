"""Answers to lesson 05 of strangers who had not read the checks, in their eleventh round: nested blocks, what outputs hold."""

from contextlib import contextmanager

from tests.answers import edited, unnamed


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


# A key that is no string becomes one; an empty tuple becomes None; a tensor of integers is lost.
edited("05.5", "other_structure", ("{key: detached", "{str(key): detached"), points=8)
edited(
    "05.5",
    "other_structure",
    ("tuple(detached(item) for item in value)", "tuple(detached(item) for item in value) or None"),
    points=8,
)
edited(
    "05.5",
    "nested",
    ("return value.detach()", "return value.detach() if value.is_floating_point() else None"),
    points=8,
    named=False,
)
