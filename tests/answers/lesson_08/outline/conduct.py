"""Wrong answers to 08.5, `outline`: what they do besides, such as hooks that stay, lost errors, a changed model."""

from torch.nn.modules.module import register_module_forward_pre_hook

from tests.answers import edited, mistake

_WITH = (
    "    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):\n        model(x)\n"
)
_HANDLES = "    handles = [register_module_forward_pre_hook(begin), register_module_forward_hook(end)]\n"

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
edited("08.5", "runs_twice", ("        model(x)\n", "        model(x)\n        model(x)\n"))
edited("08.5", "forward_directly", ("        model(x)\n", "        model.forward(x)\n"))

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

edited(
    "08.5",
    "without_grad",
    ("with register_module_forward_pre_hook", "with torch.no_grad(), register_module_forward_pre_hook"),
)
