"""Wrong answers to 12.3, `count_recomputed`."""

from collections import Counter
from functools import partial

import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from tests.answers import edited, mistake, unnamed


@unnamed("12.3", "counts")
def count_recomputed(model, x):
    return {name: torch.ones(2) for name, _ in model.named_children()}


@unnamed("12.3", "counts")
def count_recomputed(model, x):
    return {name: "1" for name, _ in model.named_children()}


@mistake("12.3", "counts_both")
def count_recomputed(model, x):
    counts = {
        name: -1 for name, _ in model.named_children()
    }  # taken for one run a layer in the first forward pass

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "counts_both")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


edited(
    "12.3",
    "counts_both",
    ("args)", "args, output)"),
    ("register_forward_pre_hook", "register_forward_hook"),
    of=count_recomputed,
)

# Taken for forward and backward having run the same.
edited(
    "12.3",
    "counts_both",
    ("return counts", "return {name: n // 2 for name, n in counts.items()}"),
    of=count_recomputed,
)
edited(
    "12.3", "after_hooks", ("args)", "args, output)"), ("register_forward_pre_hook", "register_forward_hook")
)
edited("12.3", "no_such_key", ("Counter()", "dict.fromkeys([name for name, _ in model.named_children()], 0)"))


@mistake("12.3", "not_checkpointed")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = model(x)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "no_early_stop")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    with set_checkpoint_early_stop(False):
        y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "no_backward")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "off_too_early")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    counts = dict.fromkeys(counts, 0)
    y.sum().backward()
    return counts


@mistake("12.3", "zeros_missing")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return dict(counts)


edited("12.3", "returns_nothing", ("return dict(counts)", "print(counts)"), of=count_recomputed)
edited(
    "12.3",
    "not_a_dict",
    ("return dict(counts)", "return [counts[name] for name, _ in model.named_children()]"),
    of=count_recomputed,
)


@mistake("12.3", "returns_total")
def count_recomputed(model, x):
    started = []
    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(lambda module, args: started.append(1)) for c in model.children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return len(started)


@mistake("12.3", "leaves_hooks", points=4)
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    for name, child in model.named_children():
        child.register_forward_pre_hook(partial(note, name))
    y.sum().backward()
    return counts


@mistake("12.3", "calls_now")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name):
        counts[name] += 1

    for name, child in model.named_children():
        child.register_forward_pre_hook(note(name))
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return counts


@mistake("12.3", "counts_first")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    y.sum().backward()
    return counts


@mistake("12.3", "late_binding")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)
    handles = []
    for name, child in model.named_children():

        def note(module, args):
            counts[name] += 1

        handles.append(child.register_forward_pre_hook(note))
    y = checkpoint(model, x, use_reentrant=False)
    counts.update(dict.fromkeys(counts, 0))
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "late_binding")
def count_recomputed(model, x):
    counts, handles = Counter(), []
    for name, child in model.named_children():
        handles.append(child.register_forward_pre_hook(lambda module, args: counts.update([name])))
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "other_names")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_modules()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [m.register_forward_pre_hook(partial(note, n)) for n, m in model.named_modules()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "other_names")
def count_recomputed(model, x):
    counts = Counter()
    y = checkpoint(model, x, use_reentrant=False)
    handles = [
        c.register_forward_pre_hook(lambda module, args: counts.update([type(module).__name__]))
        for c in model.children()
    ]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.3", "only_whether")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] = 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


edited("12.3", "wrong_arguments", ("] = 1", "] += 1"), ("args)", "args, output)"), of=count_recomputed)
edited("12.3", "not_a_sum", ("] = 1", "] += 1"), ("y.sum()", "y"), of=count_recomputed)
edited(
    "12.3", "no_early_stop", ("] = 1", "] += 1"), ("reentrant=False", "reentrant=True"), of=count_recomputed
)


@mistake("12.3", "in_pieces")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = x
    for child in model.children():
        y = checkpoint(child, y, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


edited("12.3", "not_the_sum", ("y.sum().backward()", "y.mean().backward()"))
edited("12.3", "not_the_sum", ("y.sum().backward()", "(y * y).sum().backward()"))
edited("12.3", "runs", ("    try:", "    model(x)\n    try:"), points=4)
edited("12.3", "mode", ("    try:", "    model.eval()\n    try:"), points=4)
edited(
    "12.3",
    "mode",
    ("    try:", "    model.eval()\n    try:"),
    ("    return", "    model.train()\n    return"),
    points=4,
)
edited(
    "12.3",
    "swallows",
    ("    finally:", "    except Exception:\n        print('failed')\n    finally:"),
    points=4,
)
edited("12.3", "other_names", ("model.named_children()}", "model.named_modules()}"))


@unnamed("12.3", "counts")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [
        inner.register_forward_pre_hook(partial(note, name))
        for name, child in model.named_children()
        for inner in child.modules()
    ]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


edited("12.3", "wipes", ("    return {", "    model.zero_grad()\n    return {"), points=4)
edited("12.3", "cut_off", ("model, x, use", "model, x.detach(), use"), points=4)
edited(
    "12.3",
    "others",
    (
        "            handle.remove()",
        "            handle.remove()\n        for child in model.children():\n            child._forward_pre_hooks.clear()",
    ),
    points=4,
)

edited(
    "12.3",
    "other_masks",
    ("use_reentrant=False)", "use_reentrant=False, preserve_rng_state=False)"),
    points=4,
)
edited("12.3", "draws", ("    try:", "    torch.manual_seed(0)\n    try:"), points=4)
edited("12.3", "draws", ("    return", "    torch.rand(1)\n    return"), points=4)
