"""More answers to 10.3, `first_nan`, in other styles, and what strangers got wrong."""

import contextlib
import math
from functools import partial

import numpy as np
import torch

from tests.answers import alternative, edited, mistake


@alternative("10.3")
def first_nan(model, x):
    """Pre-hooks see the input, hooks the output."""
    clean, culprit = [], None

    def before(module, args):
        clean.append(not any(torch.isnan(a).any() for a in args if torch.is_tensor(a)))

    def after(name, module, args, output):
        nonlocal culprit
        if clean.pop() and torch.isnan(output).any() and culprit is None:
            culprit = name

    with contextlib.ExitStack() as stack:
        for name, module in model.named_modules():
            if next(module.children(), None) is None:
                stack.callback(module.register_forward_pre_hook(before).remove)
                stack.callback(module.register_forward_hook(partial(after, name)).remove)
        model(x)
    return culprit


@alternative("10.3")
def first_nan(model, x):
    """A global hook."""
    leaves = {module: name for name, module in model.named_modules() if not [*module.children()]}
    seen = []

    def look(module, args, output):
        if module in leaves:
            seen.append((leaves[module], bool((args[0] != args[0]).any()), bool((output != output).any())))

    with contextlib.ExitStack() as stack:
        stack.callback(torch.nn.modules.module.register_module_forward_hook(look).remove)
        stack.enter_context(torch.inference_mode())
        model(x)
    return next((name for name, before, after in seen if after and not before), None)


@alternative("10.3")
def first_nan(model, x):
    class Look:
        found = None

        def __init__(self, name):
            self.name = name

        def __call__(self, module, args, output):
            (entry,) = args
            if Look.found is None and not has_nan(entry) and has_nan(output):
                Look.found = self.name

    def has_nan(tensor):
        return bool(np.isnan(tensor.detach().cpu().numpy()).sum())

    handles = []
    try:
        for name, module in model.named_modules():
            if len(module._modules) == 0:
                handles += [module.register_forward_hook(Look(name))]
        model(x)
        return Look.found
    finally:
        for handle in handles:
            handle.remove()


@alternative("10.3")
def first_nan(model, x):
    """A generator of handles, and numbers instead of tensors."""
    names = []

    def bad(values):
        return any(map(math.isnan, values.flatten().tolist()))

    def hooks():
        for name, module in model.named_modules():
            if not any(True for _ in module.children()):
                yield module.register_forward_hook(
                    lambda m, a, o, n=name: names.append(n) if bad(o) > bad(a[0]) else None
                )

    handles = list(hooks())
    try:
        model(x)
    except BaseException:
        raise
    finally:
        for handle in reversed(handles):
            handle.remove()
    first, *_ = names or [None]
    return first


@mistake("10.3", "not_run")
def first_nan(model, x):
    for name, module in model.named_modules():
        if not list(module.children()):
            y = module(x)
            if y.isnan().any() and not x.isnan().any():
                return name
            x = y
    return None


@mistake("10.3", "not_in_every_run")
def first_nan(model, x):
    """Only the last call of a module counts."""
    made, handles = {}, []

    def look(name, module, args, output):
        made.pop(name, None)
        made[name] = output.isnan().any() and not args[0].isnan().any()

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name in made if made[name]), None)


edited("10.3", None, ("output.isnan().any() and not", "torch.any(torch.isnan(output)) and not"))
edited("10.3", None, ("if not list(module.children())", "if not sum(1 for _ in module.children())"))
edited("10.3", None, ("return found[0] if found else None", "return next(iter(found), None)"))
edited(
    "10.3",
    "counts_infinity",
    (
        "output.isnan().any() and not args[0].isnan().any()",
        "output.sum().isnan() and not args[0].sum().isnan()",
    ),
)
edited("10.3", "finds", ("not args[0].isnan().any()", "not args[0].sum().isnan()"), named=False)
edited("10.3", "finds", ("output.isnan().any()", "output[0].isnan().any()"), named=False)
edited(
    "10.3",
    "finds",
    ("name, module in model.named_modules()", "name, module in model.named_children()"),
    named=False,
)
edited("10.3", "ignores_input", ("not args[0].isnan().any()", "not args[0][0].isnan().any()"))
edited(
    "10.3",
    "counts_infinity",
    ("output.isnan().any() and not args[0].isnan().any()", "not output.isfinite().all()"),
)
edited(
    "10.3",
    "never_true",
    ("            if not", "            pass\n        if not"),
    ("                handles.append", "            handles.append"),
)
edited(
    "10.3",
    "never_true",
    ("    try:\n", "    try:\n        pass\n    finally:\n        pass\n    try:\n"),
    ("        model(x)\n", "        for handle in handles:\n            handle.remove()\n        model(x)\n"),
)
edited(
    "10.3",
    "only_children",
    (
        "            if not list(module.children()):\n                handles",
        "            if name:\n                handles",
    ),
)
edited("10.3", "other_mode", ("    try:\n", "    model.eval()\n    try:\n"))
edited("10.3", "runs", ("        model(x)\n", "        model(x)\n        model(x)\n"), points=5)
edited("10.3", "rng", ("    try:\n", "    torch.manual_seed(0)\n    try:\n"), points=5)
edited("10.3", "both", ("        model(x)\n", "        model(x.nan_to_num_())\n"), named=False)
edited("10.3", "argument", ("        model(x)\n", "        model(x)\n        x.zero_()\n"), points=5)
edited("10.3", "returns_list", ("found[0] if found else None", "found[:1]"))
edited("10.3", "not_none", ("if found else None", "if found else 'none'"))
edited(
    "10.3",
    "swallows",
    ("            handle.remove()\n    return", "            handle.remove()\n        return"),
    points=5,
)
edited(
    "10.3",
    "state",
    ("def first_nan(model, x):", "found = []\n\n\ndef first_nan(model, x):"),
    ("found, handles = [], []", "handles = []"),
)
edited(
    "10.3",
    "looks_at_x",
    ("    found, handles", "    if x.isnan().any():\n        return None\n    found, handles"),
)
edited("10.3", "class_name", ("found.append(name)", "found.append(type(module).__name__)"))
edited("10.3", "not_run", ("        model(x)\n", "        model.forward(x)\n"))
edited("10.3", "grad", ("    try:\n", "    model.zero_grad()\n    try:\n"), points=5)
edited(
    "10.3",
    "other_mode",
    ("    try:\n", "    modes = {m: m.training for m in model.modules()}\n    model.eval()\n    try:\n"),
    ("    return found", "    for m, was in modes.items():\n        m.training = was\n    return found"),
)


@mistake("10.3", "not_its_input")
def first_nan(model, x):
    """The output of the module before stands for the input."""
    before, found, handles = [x], [], []

    def look(name, module, args, output):
        if output.isnan().any() and not before[-1].isnan().any():
            found.append(name)
        before.append(output)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("10.3", "order_of_first_runs")
def first_nan(model, x):
    """Runs of one module are merged."""
    made, handles = {}, []

    def look(name, module, args, output):
        makes = bool(output.isnan().any() and not args[0].isnan().any())
        made[name] = made.get(name, False) or makes

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name in made if made[name]), None)


@mistake("10.3", "not_in_every_run")
def first_nan(model, x):
    """Only the first run of a module counts."""
    made, handles = {}, []

    def look(name, module, args, output):
        made.setdefault(name, output.isnan().any() and not args[0].isnan().any())

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name in made if made[name]), None)


# The one frozen parameter is thawed.
edited("10.3", "requires_grad", ("    try:\n", "    model.requires_grad_(True)\n    try:\n"), points=5)
