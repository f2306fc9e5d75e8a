"""What the eighth strangers tried on lesson 05: wrong answers that had been accepted."""

from contextlib import contextmanager
from functools import partial

from tests.answers import edited, unnamed

_FINALLY = "        for handle in handles:\n            handle.remove()"
_MODES = "        for module, mode in modes.items():\n            module.training = mode"

edited(
    "05.3",
    "switches_mode",
    (
        "    try:",
        "    modes = {module: module.training for module in model.modules()}\n    model.eval()\n    try:",
    ),
    (_FINALLY, f"{_FINALLY}\n{_MODES}"),
    points=7,
)


@unnamed("05.3", "sees")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            model.get_submodule(name)
            parent = getattr(model, name.split(".")[0])
            handles.append(parent.register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@unnamed("05.3", "sees")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            model.get_submodule(name)
            for full, module in model.named_modules():
                if full.endswith(name.split(".")[-1]):
                    handles.append(module.register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@unnamed("05.4", "each_input")
def steer(module, direction, strength):
    def push(module, args, output):
        return output if output.dim() > 3 else output + strength * direction

    return module.register_forward_hook(push)


@unnamed("05.4", "each_input")
def steer(module, direction, strength):
    def push(module, args, output):
        shift = strength * direction
        return output + (shift[:, None, None] if output.dim() == 4 else shift)

    return module.register_forward_hook(push)


edited("05.2", "some_elements", ("(output - own)", "(output[:3] - own[:3])"))
edited("05.2", "some_elements", ("(output - own)", "(output - own)[..., :2]"))

edited(
    "05.5",
    "switches_mode",
    (
        "    try:",
        "    modes = {module: module.training for module in model.modules()}\n    model.eval()\n    try:",
    ),
    (_FINALLY, f"{_FINALLY}\n{_MODES}"),
    points=9,
)
