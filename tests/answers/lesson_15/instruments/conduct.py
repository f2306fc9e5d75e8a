"""Wrong answers to 15.1, `instruments`: what they do besides, such as hooks that stay, lost errors, a changed model."""

from contextlib import contextmanager

import torch

from tests.answers import mistake
from tests.answers.lesson_15.instruments.right import edited

edited(
    "15.1",
    "changes_output",
    ("output.register_hook(arrived)", "output.register_hook(arrived)\n        return output * 2"),
)
edited("15.1", "changes_output", ("entry = rows", "output.data.mul_(2)\n        entry = rows"))
edited(
    "15.1",
    "changes_gradient",
    ("entry[1] = grad.norm().item()", "entry[1] = grad.norm().item()\n            return grad / 2"),
)
edited("15.1", "no_gradient_to_hook", ("if output.requires_grad:", "if True:"))
edited("15.1", "leaves_hooks", ("            handle.remove()", "            pass"), points=5)
edited("15.1", "leaves_hooks", ("in handles", "in handles[1:]"), points=5)
edited(
    "15.1",
    "no_finally",
    (
        "    finally:\n        for handle in handles:\n            handle.remove()",
        "    except ZeroDivisionError:\n        pass\n    for handle in handles:\n        handle.remove()",
    ),
    points=5,
)
edited(
    "15.1", "swallows", ("    finally:", "    except BaseException:\n        pass\n    finally:"), points=5
)
edited(
    "15.1",
    "swallows",
    ("            handle.remove()", "            handle.remove()\n        return"),
    points=5,
)
edited(
    "15.1",
    "returns_tuple",
    ("output.register_hook(arrived)", "output.register_hook(arrived)\n        return entry, name"),
)


@mistake("15.1", "every_model")
@contextmanager
def instruments(model):
    rows = []
    names = {module: name for name, module in model.named_modules()}

    def begin(module, args):
        if list(module.children()) and names.get(module, "") == "":
            rows.append({})

    def note(module, args, output):
        if not list(module.children()):
            entry = rows[-1][names.get(module, "other")] = [output.norm().item(), None]
            if output.requires_grad:
                output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    handles = [
        torch.nn.modules.module.register_module_forward_pre_hook(begin),
        torch.nn.modules.module.register_module_forward_hook(note),
    ]
    try:
        yield rows
    finally:
        for handle in handles:
            handle.remove()
