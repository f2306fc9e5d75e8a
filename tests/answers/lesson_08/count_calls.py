"""Answers to 08.5, `count_calls`."""

import contextlib
from collections import Counter, defaultdict

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu import remove_hooks
from tests.answers import alternative, mistake, unnamed


@alternative("08.5")
def count_calls(model, x):
    counts = defaultdict(int)

    def note(module, args):
        counts[type(module).__name__] += 1

    handle = register_module_forward_pre_hook(note)
    try:
        model(x)
    finally:
        handle.remove()
    return dict(counts)


@alternative("08.5")
def count_calls(model, x):
    seen = []
    with register_module_forward_hook(lambda module, args, output: seen.append(type(module).__name__)):
        with torch.no_grad():
            model(x)
    return Counter(seen)


@mistake("08.5", "leaves_hook", points=3)
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    register_module_forward_hook(note)
    model(x)
    return counts


@mistake("08.5", "no_finally", points=4)
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    handle = register_module_forward_hook(note)
    model(x)
    handle.remove()
    return counts


@mistake("08.5", "removes_others", points=4)
def count_calls(model, x):
    counts = Counter()

    def note(module, args):
        counts[type(module).__name__] += 1

    register_module_forward_pre_hook(note)
    try:
        model(x)
    finally:
        nn.modules.module._global_forward_pre_hooks.clear()
    return counts


@mistake("08.5", "own_hooks_only")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with contextlib.ExitStack() as stack:
        for module in model.modules():
            stack.enter_context(module.register_forward_hook(note))
        model(x)
    return counts


@mistake("08.5", "own_hooks_only")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with contextlib.ExitStack() as stack:
        for name, module in model.named_modules():
            if name:
                stack.enter_context(module.register_forward_hook(note))
        model(x)
    return counts


@mistake("08.5", "modules_not_calls")
def count_calls(model, x):
    return Counter(type(module).__name__ for module in model.modules())


@mistake("08.5", "once_each")
def count_calls(model, x):
    counts = {}

    def note(module, args, output):
        counts[type(module).__name__] = 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "forward_directly")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model.forward(x)
    return counts


@mistake("08.5", "leaves_only")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        if not list(module.children()):
            counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "keys_not_names")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module)] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "keys_not_names")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[module] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "returns_nothing")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    print(counts)


@mistake("08.5", "returns_total")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return sum(counts.values())


@mistake("08.5", "hook_returns")
def count_calls(model, x):
    counts = {}
    hook = lambda module, args, output: counts.setdefault(type(module).__name__, 1)  # noqa: E731
    with register_module_forward_hook(hook):
        model(x)
    return counts


@mistake("08.5", "removes_others", points=4)
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    register_module_forward_hook(note)
    try:
        model(x)
    finally:
        remove_hooks(owner="user")
    return counts


@mistake("08.5", "modules_not_calls")
def count_calls(model, x):
    modules = {}  # not a set: the message shows them in order
    with register_module_forward_pre_hook(lambda module, args: modules.setdefault(module)):
        model(x)
    return Counter(type(module).__name__ for module in modules)


@mistake("08.5", "one_module_only")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with model.register_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "never_fires")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        pass
    model(x)
    return counts


@mistake("08.5", "runs_twice")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
        model(x)
    return counts


@mistake("08.5", "keeps_counting")
def count_calls(model, x, counts=Counter()):  # noqa: B008
    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "swallows", points=4)
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note), contextlib.suppress(Exception):
        model(x)
    return counts


@mistake("08.5", "keys_not_names")
def count_calls(model, x):
    counts = Counter()
    with register_module_forward_pre_hook(lambda module, args: counts.update([str(module)])):
        model(x)
    return counts


@mistake("08.5", "removes_others", points=4)
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    register_module_forward_hook(note)
    try:
        model(x)
    finally:
        nn.modules.module._global_forward_hooks.clear()
    return counts


@unnamed("08.5", "counts")
def count_calls(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(output).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "hook_returns")
def count_calls(model, x):
    counts = Counter()

    def note(module, args):
        counts[type(module).__name__] += 1
        return counts.total()

    with register_module_forward_pre_hook(note):
        model(x)
    return counts
