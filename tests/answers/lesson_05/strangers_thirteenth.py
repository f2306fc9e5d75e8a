"""Answers to lesson 05 of strangers who had not read the checks, in their thirteenth round."""

from contextlib import contextmanager

from tests.answers import edited, mistake

# Names that begin alike: ReLU and ReLU6.
edited("05.2", "too_many", ("isinstance(child, skip)", "skip.__name__ in type(child).__name__"))


# A module may have several names.
@mistake("05.3", "other_name")
@contextmanager
def extracting(model, names):
    known = {module: name for name, module in model.named_modules(remove_duplicate=False)}
    seen, handles = {}, []

    def keep(module, args, output):
        seen[known[module]] = output.detach()

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(keep))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# A dictionary that the model goes on using.
edited(
    "05.5",
    "same_dictionary",
    ("append(detached(output))", "append(output)"),
    ("return seen", "return {name: [detached(one) for one in kept] for name, kept in seen.items()}"),
    points=8,
)
edited(
    "05.5",
    "skips_none",
    ("        seen[name].append", "        if output is not None:\n            seen[name].append"),
    points=9,
)
