"""More answers to 05.2, `prove`: other styles, and what strangers got past the check."""

from contextlib import ExitStack
from functools import partial, reduce
from itertools import starmap

import numpy as np
import torch
from torch import nn

from tests.answers import alternative, edited, mistake, unnamed


@alternative("05.2")
def prove(model, x, skip):
    class Watch:
        def __init__(self):
            self.seen = []

        def __call__(self, module, args, output):
            self.seen.append((module.__class__.__name__, output.clone()))

    watch = Watch()
    with ExitStack() as stack:
        for child in filter(lambda child: not isinstance(child, skip), model.children()):
            stack.enter_context(child.register_forward_hook(watch))
        _, returned = model(x)
    return list(
        starmap(lambda seen, own: (seen[0], (seen[1] - own).abs().amax().item()), zip(watch.seen, returned))
    )


@alternative("05.2")
def prove(model, x, skip):
    names, outputs = [], []

    def keep(names, outputs, module, args, output):
        names.append(type(module).__name__)
        outputs.append(output.detach().numpy())

    handles = [
        child.register_forward_hook(partial(keep, names, outputs))
        for child in model.children()
        if not isinstance(child, skip)
    ]
    with torch.no_grad():
        _, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(n, np.abs(o - own.numpy()).max()) for n, o, own in zip(names, outputs, returned)]


@alternative("05.2")
def prove(model, x, skip):
    seen, place, result = [], 0, []

    def keep(module, args, output):
        nonlocal place
        seen.insert(place, {"name": type(module).__name__, "output": output})
        place += 1

    handles = {}
    for name, child in model.named_children():
        if isinstance(child, skip):
            continue
        handles[name] = child.register_forward_hook(keep)
    output, returned = model(x)
    while handles:
        handles.popitem()[1].remove()
    for n in range(len(returned)):
        largest = (seen[n]["output"] - returned[n]).abs()
        while largest.dim():
            largest = largest.amax(0)
        result += [(seen[n]["name"], largest.item())]
    return result


@alternative("05.2")
def prove(model, x, skip):
    children, seen = set(model.children()), []

    def keep(module, args, output):
        if module in children and not isinstance(module, skip):
            seen.append((type(module).__name__, output))

    with nn.modules.module.register_module_forward_hook(keep):
        *_, returned = model(x)
    return [(name, torch.dist(a, b, p=float("inf")).item()) for (name, a), b in zip(seen, returned)]


@alternative("05.2")
def prove(model, x, skip):
    seen, returned = [], []
    with ExitStack() as stack:
        for child in set(model._modules.values()):
            if type(child) is not skip:
                stack.callback(
                    child.register_forward_hook(lambda m, a, o: seen.append((type(m).__name__, o))).remove
                )
        returned += model(x)[1]

    def distance(a, b):
        return torch.linalg.vector_norm(a - b, ord=torch.inf)

    return [(name, float(distance(a, b))) for (name, a), b in zip(seen, returned)]


@alternative("05.2")
def prove(model, x, skip):
    seen = []
    handles = [c.register_forward_hook(lambda m, a, o: seen.append((m, o))) for c in model.children()]
    returned = model(x)[1]
    [handle.remove() for handle in handles]
    seen = [(type(module).__name__, output) for module, output in seen if not isinstance(module, skip)]
    return [(name, reduce(max, (o - r).abs().flatten()).item()) for (name, o), r in zip(seen, returned)]


@mistake("05.2", "not_the_largest")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.append((m, o))))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(type(m).__name__, (output - own).abs().sum().item()) for (m, output), own in zip(seen, returned)]


_MAX, _NAME = "(output - own).abs().sum().item()", "type(m).__name__"
edited("05.2", "not_the_largest", (_MAX, "(output - own).norm().item()"), of=prove)
edited("05.2", "not_the_largest", (_MAX, "nn.functional.mse_loss(output, own).item()"), of=prove)
edited("05.2", "not_the_largest", (_MAX, "((output - own) ** 2).max().item()"), of=prove)
edited("05.2", "not_the_largest", (_MAX, "(output - own).abs().min().item()"), of=prove)
edited("05.2", "some_elements", (_MAX, "(output - own).abs().flatten()[0].item()"), of=prove)
edited("05.2", "some_elements", (_MAX, "(output - own).abs().flatten()[-1].item()"), of=prove)
edited("05.2", "signed", (_MAX, "(output - own).max().abs().item()"), of=prove)
edited("05.2", "signed", (_MAX, "abs((output - own).sum().item())"), of=prove)
edited("05.2", "of_maxima", (_MAX, "abs(output.max() - own.max()).item()"), of=prove)
edited("05.2", "of_maxima", (_MAX, "(output.abs().max() - own.abs().max()).abs().item()"), of=prove)
edited("05.2", "not_a_number", (_MAX, "(output - own).abs().flatten().max(0)"), of=prove)
edited("05.2", "not_a_name", (_NAME, "type(m)"), of=prove)
edited("05.2", "not_a_name", (_NAME, "str(m)"), of=prove)
edited("05.2", "not_a_name", (_NAME, "m"), of=prove)
edited("05.2", "not_a_name", (_NAME, "type(m).__name__.lower()"), of=prove)
edited("05.2", "always_zero", (_MAX, "(own - own).abs().max().item()"), of=prove)
edited("05.2", "not_a_number", (_MAX, "str((output - own).abs().max().item())"), of=prove)
edited(
    "05.2",
    "not_a_list",
    ("    return [(", "    return tuple([("),
    ("own in zip(seen, returned)]", "own in zip(seen, returned)])"),
    ("abs().sum()", "abs().max()"),
    of=prove,
)
edited(
    "05.2",
    "mode",
    ("    out, returned", "    model.eval()\n    out, returned"),
    ("abs().sum()", "abs().max()"),
    of=prove,
    points=3,
)
edited(
    "05.2",
    "others",
    (
        "        handle.remove()",
        "        handle.remove()\n    for child in model.children():\n        child._forward_hooks.clear()",
    ),
    ("abs().sum()", "abs().max()"),
    of=prove,
    points=3,
)
edited(
    "05.2",
    "requires_grad",
    ("    out, returned", "    model.requires_grad_(True)\n    out, returned"),
    ("abs().sum()", "abs().max()"),
    of=prove,
    points=3,
)
edited(
    "05.2",
    "leaves_hooks",
    ("        handle.remove()", "        pass\n    handle.remove()"),
    ("abs().sum()", "abs().max()"),
    of=prove,
    points=3,
)


@mistake("05.2", "runs_twice", points=3)
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.append((m, o))))
    model(x)
    for handle in handles:
        handle.remove()
    returned = model.forward(x)[1]
    return [(type(m).__name__, (output - own).abs().max().item()) for (m, output), own in zip(seen, returned)]


@mistake("05.2", "calls_missing")
def prove(model, x, skip):
    seen, handles = {}, []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.update({type(m).__name__: o})))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, (output - own).abs().max().item()) for (name, output), own in zip(seen.items(), returned)]


@mistake("05.2", "calls_missing")
def prove(model, x, skip):
    seen, handles = {}, []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.update({m: o})))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(type(m).__name__, (o - own).abs().max().item()) for (m, o), own in zip(seen.items(), returned)]


@mistake("05.2", "not_a_list")
def prove(model, x, skip):
    seen, handles = [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.append((m, o))))
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return {type(m).__name__: (output - own).abs().max().item() for (m, output), own in zip(seen, returned)}


@mistake("05.2", "swallows", points=3)
def prove(model, x, skip):
    seen, handles, returned = [], [], []
    for child in model.children():
        if not isinstance(child, skip):
            handles.append(child.register_forward_hook(lambda m, a, o: seen.append((m, o))))
    try:
        out, returned = model(x)
    except RuntimeError as error:
        print(error)
    for handle in handles:
        handle.remove()
    return [(type(m).__name__, (output - own).abs().max().item()) for (m, output), own in zip(seen, returned)]


@unnamed("05.2", "differences")
def prove(model, x, skip):
    seen = []
    handles = [
        child.register_forward_hook(lambda m, a, o: seen.append((type(m).__name__, o)))
        for child in model.children()
        if not isinstance(child, skip)
    ]
    out, returned = model(x)
    for handle in handles:
        handle.remove()
    return [(name, round((o - own).abs().max().item(), 2)) for (name, o), own in zip(seen, returned)]


edited("05.2", "too_many", ("model.children()", "model._modules.values()"))
edited("05.2", "differences", ("(output - own)", "(output - own).nan_to_num()"), named=False, points=0)
edited("05.2", "overwrites", ("(output - own)", "own.detach().sub_(output)"), points=3)
edited("05.2", "overwrites", ("(output - own).abs()", "(output.data.sub_(own)).abs()"), points=3)
edited("05.2", "some_elements", ("(output - own).abs()", "(output - own)[0].abs()"))
