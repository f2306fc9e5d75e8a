"""Further wrong answers to the exercises of lesson 08 that readers wrote without knowing the checks."""

# Edited answers use some of these imports.
from functools import partial  # noqa: F401

import torch  # noqa: F401

from hookedu import list_hooks
from tests.answers import edited, mistake, unnamed

edited("08.1", "not_a_list", ("return sorted(events, key=place)", "return iter(sorted(events, key=place))"))
edited("08.1", None, ("return sorted(events, key=place)", "events.sort(key=place)\n    return events"))

edited("08.2", "calls_forward", ("model(x)\n    finally", "model.forward(x)\n    finally"), points=4)
edited("08.2", "other_input", ("model(x)\n    finally", "model(torch.ones_like(x))\n    finally"), points=4)
edited("08.2", "other_input", ("model(x)\n    finally", "model(torch.zeros_like(x))\n    finally"), points=4)
edited(
    "08.2",
    "changes_outputs",
    ("tuple(output.shape)\n", "tuple(output.shape)\n        return output.detach() * 0\n"),
    points=4,
)
edited(
    "08.2",
    "changes_outputs",
    ("tuple(output.shape)\n", "tuple(output.shape)\n        return output.detach()\n"),
    points=4,
)
edited(
    "08.2",
    "unrestored",
    (
        "    try:\n        model(x)\n    finally:\n        for handle in handles:\n            handle.remove()\n",
        "    model(x)\n    for handle in handles:\n        handle.remove()\n",
    ),
    points=4,
)
edited(
    "08.2",
    "unrestored",
    ("    try:\n", "    modes = {m: m.training for m in model.modules()}\n    model.eval()\n    try:\n"),
    ("    return shapes", "    for m, mode in modes.items():\n        m.training = mode\n    return shapes"),
    points=4,
)
edited(
    "08.2",
    "unrestored",
    ("    try:\n", "    was = torch.is_grad_enabled()\n    torch.set_grad_enabled(False)\n    try:\n"),
    ("    return shapes", "    torch.set_grad_enabled(was)\n    return shapes"),
    points=4,
)


@unnamed("08.3", "found")
def remove_leaked(model, handles):
    known = max(handle.id for handle in handles)
    leaked = [hook for hook in list_hooks(model) if hook.id > known]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


edited(
    "08.3", "not_a_list", ("return [hook.path for hook in leaked]", "return (hook.path for hook in leaked)")
)
edited(
    "08.3",
    "not_a_list",
    ("return [hook.path for hook in leaked]", "return {hook.path: 1 for hook in leaked}"),
)
edited(
    "08.3", "not_a_list", ("return [hook.path for hook in leaked]", "return ','.join(h.path for h in leaked)")
)

edited(
    "08.4",
    "drops_result",
    ("forward_hook(hook)", "forward_hook(lambda m, a, o: (hook(m, a, o), None)[1])"),
    points=3,
)
edited(
    "08.4",
    "silent",
    ("forward_hook(hook)", "forward_hook(lambda m, a, o: hook(m, a, o) if m.training else None)"),
)
edited("08.4", "empty_name", ("if name in handles", "if name and name in handles"))
edited("08.4", "prepends", ("forward_hook(hook)", "forward_hook(hook, prepend=True)"))
edited(
    "08.4",
    "one_for_all",
    (
        "    if name in handles:\n        handles[name].remove()\n",
        "    for key in handles:\n        if key.startswith(name):\n            handles[key].remove()\n",
    ),
    points=4,
)
edited(
    "08.4",
    "one_for_all",
    (
        "    if name in handles:\n        handles[name].remove()\n",
        "    for key in handles:\n        if name.startswith(key):\n            handles[key].remove()\n",
    ),
    points=4,
)


@mistake("08.4", "one_for_all", points=2)
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    for other in list_hooks(module):
        if other.callable is hook:
            other.remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@unnamed("08.4", "moved", points=4)
def register_once(handles, name, module, hook):
    if name in handles and hook in module._forward_hooks.values():
        return handles[name]
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


edited("08.3", "empty_list", ("    known =", "    if not handles:\n        return []\n    known ="))
edited("08.3", "empty_list", ("    known =", "    if not handles:\n        return None\n    known ="))
edited("08.4", "not_stored", ("    if name in", "    handles = handles or {}\n    if name in"))
