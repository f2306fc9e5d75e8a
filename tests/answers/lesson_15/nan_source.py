"""Answers to 15.3, `nan_source`."""

import math
from contextlib import ExitStack
from functools import partial

import torch

from hookedu import record
from tests.answers import alternative, edited, mistake


@alternative("15.3")
def nan_source(model, x):
    found = []

    def look(name, module, args, output):
        for sample, values in enumerate(output):
            if not found and not torch.isfinite(values).all():
                found.append((name, sample))

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if not [*module.children()]:
                stack.enter_context(module.register_forward_hook(partial(look, name)))
        model(x)
    return found[0] if found else None


@alternative("15.3")
def nan_source(model, x):
    class Found(Exception):
        pass

    def look(name, module, args, output):
        ok = torch.isfinite(output).reshape(len(output), -1).all(1)
        if not ok.all():
            raise Found(name, ok.int().argmin().item())

    handles = []
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    except Found as found:
        return found.args
    finally:
        for handle in handles:
            handle.remove()
    return None


@alternative("15.3")
def nan_source(model, x):
    result = None

    def hook_for(name):
        def hook(module, args, output):
            nonlocal result
            if result is not None:
                return
            bad = torch.nonzero(output.isnan() | output.isinf())
            if len(bad):
                result = name, int(bad[:, 0].min())

        return hook

    handles = [
        m.register_forward_hook(hook_for(n)) for n, m in model.named_modules() if not list(m.children())
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return result


@alternative("15.3")
class Source:
    """A class that is called like a function, by making one."""

    def __new__(cls, model, x):
        self = super().__new__(cls)
        self.names = {m: n for n, m in model.named_modules() if not list(m.children())}
        self.found = []
        handles = [m.register_forward_hook(self.look) for m in self.names]
        try:
            model(x)
        finally:
            for handle in handles:
                handle.remove()
        return next(iter(self.found), None)

    def look(self, module, args, output):
        samples = (~torch.isfinite(output)).flatten(1).any(1).nonzero().flatten().tolist()
        self.found += [(self.names[module], sample) for sample in samples]


@alternative("15.3")
def nan_source(model, x):
    """One global hook; modules with children do not count."""
    names = {id(module): name for name, module in model.named_modules() if not list(module.children())}
    found = []

    def look(module, args, output):
        if id(module) in names and not found:
            flags = [all(map(math.isfinite, values.flatten().tolist())) for values in output]
            if not all(flags):
                found.append([names[id(module)], flags.index(False)])

    with torch.nn.modules.module.register_module_forward_hook(look):
        model(x)
    return found[0] if found else None


@alternative("15.3")
def nan_source(model, x):
    leaves = [n for n, m in model.named_modules() if not list(m.children())]
    order = []
    handles = [
        model.get_submodule(n).register_forward_hook(
            lambda m, a, out, n=n: order.append((n, out.detach().clone()))
        )
        for n in leaves
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    for name, output in order:
        rows = output.flatten(start_dim=1)
        bad = [i for i in range(len(rows)) if not bool(rows[i].isfinite().all())]
        if bad:
            return name, bad[0]
    return None


@alternative("15.3")
def nan_source(model, x):
    found, handles = {}, []

    def look(module, args, output, name=""):
        finite = (output - output == 0).flatten(1).all(1)
        if not finite.all() and not found:
            found["at"] = (name, finite.tolist().index(False))

    try:
        for name, module in model.named_modules():
            if sum(1 for _ in module.children()):
                continue
            handles.append(module.register_forward_hook(partial(look, name=name)))
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found.get("at")


@alternative("15.3")
def nan_source(model, x):
    """By record(), whose calls know their order."""
    leaves = [name for name, module in model.named_modules() if not list(module.children())]
    found = []

    def look(module, args, output):
        bad = ~output.isfinite().flatten(1).all(1)
        found.extend((names[module], n) for n in bad.nonzero().flatten().tolist())

    names = {model.get_submodule(name): name for name in leaves}
    with ExitStack() as stack:
        for module in names:
            stack.enter_context(module.register_forward_hook(look))
        with record(model, layers=leaves):
            model(x)
    return found[0] if found else None


@alternative("15.3")
def nan_source(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        values = output.detach().flatten(1).numpy()
        sums = (values * 0).sum(axis=1)  # nan where one is not finite
        if (sums != sums).any():
            found.append((name, int((sums != sums).argmax())))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        [handle.remove() for handle in handles]
    return found[0] if len(found) > 0 else None


edited("15.3", None, ("bad.nonzero()[0].item()", "bad.int().argmax().item()"))
edited("15.3", None, ("bad.nonzero()[0].item()", "bad.tolist().index(True)"))
edited(
    "15.3",
    None,
    ("~output.isfinite().flatten(1).all(dim=1)", "(output.isnan() | output.isinf()).flatten(1).any(dim=1)"),
)
edited("15.3", None, ("found[0] if found else None", "next(iter(found), None)"))
edited("15.3", None, ("if bad.any():", "if bad.any() and not found:"))
edited("15.3", None, ("output.isfinite().flatten(1)", "output.detach().abs().lt(float('inf')).flatten(1)"))

edited("15.3", "not_run", ("        model(x)\n", "        pass\n"))
edited("15.3", "not_run", ("model(x)\n    finally", "model.forward(x)\n    finally"))
edited("15.3", "other_mode", ("        model(x)\n", "        model.eval()(x)\n"))
edited("15.3", "changes_output", ("if bad.any():", "output.data.add_(1)\n        if bad.any():"))
edited(
    "15.3",
    "changes_output",
    ("        bad = ", "        output = output + 1\n        bad = "),
    (
        "found.append((name, bad.nonzero()[0].item()))",
        "found.append((name, bad.nonzero()[0].item()))\n        return output",
    ),
)
edited("15.3", "only_name", ("found.append((name, bad.nonzero()[0].item()))", "found.append(name)"))
edited("15.3", "all_layers", ("found[0] if found else None", "found or None"))
edited("15.3", "turned_round", ("(name, bad.nonzero()[0].item())", "(bad.nonzero()[0].item(), name)"))
edited(
    "15.3",
    "only_containers",
    ("model.named_modules()", "model.named_children()"),
    ("if not list(module.children())", "if True"),
)
edited("15.3", "short_name", ("found.append((name,", 'found.append((name.split(".")[-1],'))
edited("15.3", "class_name", ("found.append((name,", "found.append((type(module).__name__,"))
edited(
    "15.3",
    "late_binding",
    ("look(name, module, args, output)", "look(module, args, output)"),
    ("partial(look, name)", "look"),
)
edited(
    "15.3", "adds_up", ("output.isfinite().flatten(1).all(dim=1)", "output.flatten(1).sum(dim=1).isfinite()")
)
edited(
    "15.3", "only_nan", ("~output.isfinite().flatten(1).all(dim=1)", "output.isnan().flatten(1).any(dim=1)")
)
edited(
    "15.3",
    "by_definition",
    (
        "found[0] if found else None",
        "min(found, key=lambda pair: [n for n, _ in model.named_modules()].index(pair[0])) if found else None",
    ),
)
edited("15.3", "by_definition", ("found[0]", "found[-1]"))
edited("15.3", "returns_module", ("found.append((name,", "found.append((module,"))
edited("15.3", "not_python", ("bad.nonzero()[0].item()", "bad.nonzero()[0]"))
edited("15.3", "not_python", ("bad.nonzero()[0].item()", "bad.nonzero()[0, 0]"))
edited("15.3", "all_samples", ("bad.nonzero()[0].item()", "bad.nonzero().flatten().tolist()"))
edited("15.3", "last_sample", ("bad.nonzero()[0]", "bad.nonzero()[-1]"))
edited(
    "15.3", "whole_index", ("bad.nonzero()[0].item()", "(~output.isfinite()).flatten().nonzero()[0].item()")
)
edited("15.3", "never_true", ("found[0] if found else None", "None"))
edited(
    "15.3",
    "never_true",
    ("~output.isfinite().flatten(1).all(dim=1)", "(output == float('nan')).flatten(1).any(dim=1)"),
)
edited("15.3", "never_true", (".all(dim=1)", ".any(dim=1)"))
edited("15.3", "not_none", ("if found else None", 'if found else ("", -1)'))
edited("15.3", "looks_for_maker", ("if bad.any():", "if bad.any() and args[0].isfinite().all():"))
edited("15.3", "nothing_to_take", (" if found else None", ""))
edited(
    "15.3", "swallows", ("    finally:", "    except Exception:\n        return None\n    finally:"), points=6
)
edited("15.3", "leaves_hooks", ("            handle.remove()", "            pass"), points=5)
edited(
    "15.3",
    "no_finally",
    (
        "    finally:\n        for handle in handles:\n            handle.remove()",
        "    except ZeroDivisionError:\n        pass\n    for handle in handles:\n        handle.remove()",
    ),
    points=6,
)
edited("15.3", "calls_now", ("partial(look, name)", "print(name)"))
edited("15.3", "wrong_arguments", ("look(name, module, args, output)", "look(name, output)"))
edited(
    "15.3",
    "returns_tuple",
    ("if bad.any():", "if not bad.any():\n            return name, 0\n        if bad.any():"),
)
edited("15.3", "runs", ("        model(x)\n", "        model(x)\n        model(x)\n"), points=6)


@mistake("15.3", "counts_samples")
def nan_source(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        bad = ~output.isfinite().flatten(1).all(dim=1)
        if bad.any():
            found.append((name, int(bad.sum())))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


@mistake("15.3", "never_true")
def nan_source(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        bad = ~output.isfinite().flatten(1).all(dim=1)
        if bad.any():
            found.append((name, bad.nonzero()[0].item()))

    try:
        for name, module in model.named_modules():
            if list(module.parameters(recurse=False)):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


edited(
    "15.3",
    "mends",
    (
        "found.append((name, bad.nonzero()[0].item()))",
        "found.append((name, bad.nonzero()[0].item()))\n            return output.nan_to_num()",
    ),
)
edited(
    "15.3",
    "by_definition",
    (
        "found.append((name, bad.nonzero()[0].item()))",
        "found[:] = [pair for pair in found if pair[0] != name] + [(name, bad.nonzero()[0].item())]",
    ),
)
edited("15.3", "finds", ("bad.nonzero()[0].item()", "output.flatten(1).sum(1).argmax().item()"), named=False)


edited(
    "15.3",
    "blames_input",
    (
        "        bad = ~output.isfinite().flatten(1).all(dim=1)\n",
        "        bad = ~(output.isfinite().flatten(1).all(dim=1) & args[0].isfinite().flatten(1).all(dim=1))\n",
    ),
)


edited("15.3", "several_numbers", (".flatten(1).all(dim=1)", ".all(dim=1)"))
edited("15.3", "several_numbers", (".flatten(1).all(dim=1)", ""))
edited("15.3", "within_sample", (".flatten(1).all(dim=1)", ".flatten(1).all(dim=0)"))
