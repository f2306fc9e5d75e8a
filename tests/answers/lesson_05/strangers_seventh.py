"""What the seventh strangers tried on lesson 05: wrong answers that had been accepted."""

from contextlib import contextmanager
from functools import partial

from tests.answers import edited, mistake, unnamed

edited(
    "05.1",
    "freezes",
    (
        "seen.append((args[0], output))",
        "seen.append((args[0], output))\n        module.requires_grad_(False)",
    ),
)
edited("05.1", "sees", ("args[0], output)", "args[0], output.detach().half())"), named=False)

edited("05.2", "forward_directly", ("model(x)", "model.forward(x)"), points=3)
edited(
    "05.2",
    "cuts_gradient",
    ("__name__, output))", "__name__, output))\n        return output.detach()"),
    points=3,
)
edited("05.2", "detaches_in_place", ("(output - own)", "(output.detach_() - own.detach_())"), points=3)
edited(
    "05.2",
    "only_with_grad",
    ("        seen.append", "        if output.requires_grad:\n            seen.append"),
    ("strict=True", "strict=False"),
)

_KEEP = "        seen[name] = output.detach()"
edited("05.3", "only_with_grad", (_KEEP, f"        if output.requires_grad:\n    {_KEEP}"))


@mistake("05.3", "swallows_error", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    except ValueError as error:
        print(error)
    finally:
        for handle in handles:
            handle.remove()


edited(
    "05.3",
    "shared_dict",
    ("def extracting(model, names):", "def extracting(model, names, seen={}):"),
    ("    seen, handles = {}, []", "    seen.clear()\n    handles = []"),
)
_ON = "            module = model.get_submodule(name)"
_REPLACED = """            try:
                module = model.get_submodule(name)
            except AttributeError:
                raise KeyError(name) from None"""
edited("05.3", "replaces_name_error", (_ON, _REPLACED), points=7)


@mistake("05.3", "swallows_error", points=7)
class Extracting:
    def __init__(self, model, names):
        self.model, self.names, self.handles = model, names, []

    def __enter__(self):
        seen = {}
        modules = {name: self.model.get_submodule(name) for name in self.names}
        for name, module in modules.items():
            keep = lambda m, args, output, name=name: seen.update({name: output.detach()})  # noqa: E731
            self.handles.append(module.register_forward_hook(keep))
        return seen

    def __exit__(self, kind, error, trace):
        for handle in self.handles:
            handle.remove()
        return kind is RuntimeError


_PUSH = "return output + strength * direction"
edited(
    "05.4",
    "remembers_output",
    ("        " + _PUSH, f"        return made.setdefault('o', {_PUSH[7:]})"),
    ("    def push", "    made = {}\n\n    def push"),
)
edited(
    "05.4",
    "remembers_output",
    ("        " + _PUSH, f"        return made.setdefault(output.shape, {_PUSH[7:]})"),
    ("    def push", "    made = {}\n\n    def push"),
)


@unnamed("05.4", "raised")
def steer(module, direction, strength):  # the shift keeps the shape of the first output
    shift = []

    def push(module, args, output):
        if not shift:
            shift.append((strength * direction).expand_as(output).clone())
        return output + shift[0]

    return module.register_forward_hook(push)


_ADD = "        seen[name].append(detached(output))"
edited("05.5", "only_with_grad", (_ADD, f"        if output.requires_grad:\n    {_ADD}"))
edited(
    "05.5",
    "swallows_error",
    ("    finally:", "    except ValueError as error:\n        print(error)\n    finally:"),
    points=9,
)
