"""Wrong answers to 08.5, `outline`: what comes out is not what was asked for."""

import contextlib
from collections import Counter

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from tests.answers import edited, mistake

_NAME = "type(module).__name__"


@mistake("08.5", "inner_first")
def outline(model, x):
    rows, depth = [], [0]

    def begin(module, args):
        depth[0] += 1

    def end(module, args, output):
        depth[0] -= 1
        rows.append((depth[0], type(module).__name__))

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows


@mistake("08.5", "inner_first")
def outline(model, x):
    rows = []
    with register_module_forward_hook(lambda module, a, o: rows.append((0, type(module).__name__))):
        model(x)
    return rows


@mistake("08.5", "never_closes")
def outline(model, x):
    rows = []
    with register_module_forward_pre_hook(lambda m, args: rows.append((len(rows), type(m).__name__))):
        model(x)
    return rows


@mistake("08.5", "flat")
def outline(model, x):
    rows = []
    with register_module_forward_pre_hook(lambda module, args: rows.append((0, type(module).__name__))):
        model(x)
    return rows


@mistake("08.5", "depth_of_names")
def outline(model, x):
    names, rows = {module: name for name, module in model.named_modules()}, []

    def begin(module, args):
        name = names.get(module, "hidden")
        rows.append((len(name.split(".")) if name else 0, type(module).__name__))

    with register_module_forward_pre_hook(begin):
        model(x)
    return rows


@mistake("08.5", "own_hooks_only")
def outline(model, x):
    rows, running = [], []

    def begin(module, args):
        rows.append((len(running), type(module).__name__))
        running.append(module)

    def end(module, args, output):
        running.pop()

    with contextlib.ExitStack() as stack:
        for module in model.modules():
            stack.enter_context(module.register_forward_pre_hook(begin))
            stack.enter_context(module.register_forward_hook(end))
        model(x)
    return rows


@mistake("08.5", "once_each")
def outline(model, x):
    rows, running = {}, []

    def begin(module, args):
        rows.setdefault(module, (len(running), type(module).__name__))
        running.append(module)

    def end(module, args, output):
        running.pop()

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return list(rows.values())


@mistake("08.5", "leaves_only")
def outline(model, x):
    rows, running = [], []

    def begin(module, args):
        if not list(module.children()):
            rows.append((len(running), type(module).__name__))
        running.append(module)

    def end(module, args, output):
        running.pop()

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows


@mistake("08.5", "one_module_only")
def outline(model, x):
    rows = []
    with model.register_forward_pre_hook(lambda module, args: rows.append((0, type(module).__name__))):
        model(x)
    return rows


@mistake("08.5", "not_pairs")
def outline(model, x):
    lines, depth = [], [0]

    def begin(module, args):
        lines.append("  " * depth[0] + type(module).__name__)
        depth[0] += 1

    def end(module, args, output):
        depth[0] -= 1

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return lines


@mistake("08.5", "not_pairs")  # what 08.5 asked for in an earlier version
def outline(model, x):
    counts = Counter()

    def note(module, args, output):
        counts[type(module).__name__] += 1

    with register_module_forward_hook(note):
        model(x)
    return counts


@mistake("08.5", "keeps_rows")
def outline(model, x, rows=[]):  # noqa: B006
    running = []

    def begin(module, args):
        rows.append((len(running), type(module).__name__))
        running.append(module)

    def end(module, args, output):
        running.pop()

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows


@mistake("08.5", "too_deep")
def outline(model, x, depth=[0]):  # noqa: B006
    rows = []

    def begin(module, args):
        rows.append((depth[0], type(module).__name__))
        depth[0] += 1

    def end(module, args, output):
        depth[0] -= 1

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows


@mistake("08.5", "no_nonlocal")
def outline(model, x):
    rows, depth = [], 0

    def begin(module, args):
        rows.append((depth, type(module).__name__))  # noqa: F823
        depth += 1

    def end(module, args, output):
        depth -= 1  # noqa: F823

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows


edited(  # a module that runs inside one of the same class is not counted
    "08.5",
    "rows",
    ("len(running)", "len(set(running))"),
    ("running.append(module)", "running.append(type(module))"),
    named=False,
)
edited("08.5", "too_deep", ("rows.append((len(running), ", "rows.append((len(running) + 1, "))
edited(
    "08.5",
    "too_deep",
    (
        "rows.append((len(running), type(module).__name__))\n        running.append(module)",
        "running.append(0)\n        rows.append((len(running), type(module).__name__))",
    ),
)
edited(
    "08.5", "name_first", ("(len(running), type(module).__name__)", "(type(module).__name__, len(running))")
)
edited("08.5", "not_pairs", ("(len(running), type(module).__name__)", "type(module).__name__"))
edited("08.5", "returns_nothing", ("    return rows", "    print(rows)"))
edited("08.5", "qualified_names", (_NAME, "type(module).__qualname__"))
edited("08.5", "not_class_names", (_NAME, "type(module)"))
edited("08.5", "not_class_names", (_NAME, "str(module)"))
edited("08.5", "not_class_names", (_NAME, "str(type(module))"))
edited("08.5", "never_fires", ("        model(x)\n", "        pass\n    model(x)\n"))
edited("08.5", "flat", ("        running.append(module)\n", ""), ("        running.pop()", "        pass"))
edited("08.5", "never_closes", ("        running.pop()", "        pass"))


@mistake("08.5", "depth_of_names")
def outline(model, x):
    depth = {m: n.count(".") + 1 if n else 0 for n, m in model.named_modules()}
    rows = []

    def note(module, args):
        if module in depth:
            rows.append((depth[module], type(module).__name__))

    with register_module_forward_pre_hook(note):
        model(x)
    return rows
