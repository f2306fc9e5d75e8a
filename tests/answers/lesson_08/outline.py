"""Answers to 08.5, `outline`."""

import contextlib
from collections import Counter

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from tests.answers import alternative, edited, mistake

_WITH = (
    "    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):\n        model(x)\n"
)
_HANDLES = "    handles = [register_module_forward_pre_hook(begin), register_module_forward_hook(end)]\n"
_NAME = "type(module).__name__"


@alternative("08.5")
def outline(model, x):
    rows, depth = [], 0

    def begin(module, args):
        nonlocal depth
        rows.append((depth, type(module).__name__))
        depth += 1

    def end(module, args, output):
        nonlocal depth
        depth -= 1

    handles = [register_module_forward_pre_hook(begin), register_module_forward_hook(end)]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return rows


@alternative("08.5")
def outline(model, x):
    steps = []
    with (
        register_module_forward_pre_hook(lambda module, args: steps.append(module)),
        register_module_forward_hook(lambda module, args, output: steps.append(None)),
    ):
        model(x)
    rows, depth = [], 0
    for module in steps:
        if module is None:
            depth -= 1
        else:
            rows.append([depth, module._get_name()])
            depth += 1
    return rows


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


edited(
    "08.5",
    "hook_returns",
    ("forward_hook(end):", "forward_hook(lambda module, args, output: running.pop()):"),
)


@mistake("08.5", "hook_returns")
def outline(model, x):
    rows = []

    def begin(module, args):
        rows.append((0, type(module).__name__))
        return len(rows)

    with register_module_forward_pre_hook(begin):
        model(x)
    return rows


edited("08.5", "runs_copy", ("        model(x)\n", "        copy.deepcopy(model)(x)\n"), points=4)
edited(
    "08.5",
    "removes_others",
    (
        _WITH,
        "    register_module_forward_pre_hook(begin)\n    register_module_forward_hook(end)\n    try:\n"
        "        model(x)\n    finally:\n        remove_hooks(owner='user')\n",
    ),
    points=4,
)
edited(
    "08.5",
    "removes_others",
    (
        _WITH,
        "    register_module_forward_pre_hook(begin)\n    try:\n        with register_module_forward_hook(end):\n"
        "            model(x)\n    finally:\n        nn.modules.module._global_forward_pre_hooks.clear()\n",
    ),
    points=4,
)
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
edited("08.5", "runs_twice", ("        model(x)\n", "        model(x)\n        model(x)\n"))
edited("08.5", "forward_directly", ("        model(x)\n", "        model.forward(x)\n"))
edited("08.5", "flat", ("        running.append(module)\n", ""), ("        running.pop()", "        pass"))
edited("08.5", "never_closes", ("        running.pop()", "        pass"))

# Hooks and exceptions.
edited(
    "08.5",
    "leaves_hook",
    (
        _WITH,
        "    register_module_forward_pre_hook(begin)\n    with register_module_forward_hook(end):\n        model(x)\n",
    ),
    points=3,
)
edited(
    "08.5",
    "no_finally",
    (_WITH, f"{_HANDLES}    model(x)\n    for handle in handles:\n        handle.remove()\n"),
    points=4,
)
edited(
    "08.5",
    "no_finally",
    (
        _WITH,
        f"{_HANDLES}    try:\n        model(x)\n    finally:\n        handles[0].remove()\n    handles[1].remove()\n",
    ),
    points=4,
)
edited(
    "08.5",
    "swallows",
    (
        "register_module_forward_hook(end):",
        "register_module_forward_hook(end), contextlib.suppress(BaseException):",
    ),
    points=4,
)
edited(
    "08.5",
    "swallows",
    (
        _WITH + "    return rows",
        f"{_HANDLES}    try:\n        model(x)\n    finally:\n        for handle in handles:\n            handle.remove()\n        return rows",
    ),
    points=4,
)
edited(
    "08.5",
    "raises_another",
    (
        "        model(x)\n",
        "        try:\n            model(x)\n        except BaseException as error:\n            raise RuntimeError('failed') from error\n",
    ),
    points=4,
)
edited(
    "08.5",
    "raises_another",
    (
        "        model(x)\n",
        "        try:\n            model(x)\n        except Exception:\n            raise RuntimeError('failed')\n",
    ),
    points=4,
)

# What is asked of the run itself.
edited("08.5", "other_input", ("        model(x)\n", "        model(torch.zeros_like(x))\n"), points=4)
edited(
    "08.5",
    "changes_outputs",
    (
        "running.pop()",
        "running.pop()\n        return output[0].detach() if isinstance(output, tuple) else output.detach()",
    ),
    points=4,
)
edited(
    "08.5",
    "changes_outputs",
    (
        "running.pop()",
        "running.pop()\n        return output.clone() * 0 if isinstance(output, torch.Tensor) else output",
    ),
    points=4,
)
edited(
    "08.5",
    "calls_forward",
    (
        "    with register",
        "    rows.append((0, type(model).__name__))\n    running.append(model)\n    with register",
    ),
    ("        model(x)\n", "        model.forward(x)\n"),
    points=4,
)
edited("08.5", "runs", ("    with register", "    model(x)\n    with register"), points=4)
edited(
    "08.5",
    "mode",
    ("    with register", "    was = model.training\n    model.eval()\n    with register"),
    ("    return rows", "    model.train(was)\n    return rows"),
    points=4,
)


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


edited(
    "08.5",
    "without_grad",
    ("with register_module_forward_pre_hook", "with torch.no_grad(), register_module_forward_pre_hook"),
)
