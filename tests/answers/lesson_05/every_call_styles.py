"""More answers to 05.5, `every_call`: other styles, and what strangers got past the check."""

from collections import OrderedDict, defaultdict
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from tests.answers import alternative, edited, mistake


@alternative("05.5")
def every_call(model, x):
    class Recorder:
        def __init__(self, module):
            self.outputs, self.handle = [], module.register_forward_hook(self)

        def __call__(self, module, args, output):
            self.outputs.append(self.without_graph(output))

        def without_graph(self, value):
            if isinstance(value, (list, tuple)):
                return type(value)([self.without_graph(item) for item in value])
            if isinstance(value, dict):
                return {**{key: self.without_graph(value[key]) for key in value}}
            return value.detach() if isinstance(value, torch.Tensor) else value

    recorders = {n: Recorder(m) for n, m in model.named_modules() if next(m.children(), None) is None}
    try:
        model(x)
    finally:
        for recorder in recorders.values():
            recorder.handle.remove()
    return {name: recorder.outputs for name, recorder in recorders.items()}


@alternative("05.5")
def every_call(model, x):
    names = {
        module: name
        for name, module in model.named_modules()
        if not [*filter(None, module._modules.values())]
    }
    calls = []

    def keep(module, args, output):
        if (name := names.get(module)) is not None:
            leaves, structure = tree_flatten(output)
            leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            calls.append((name, tree_unflatten(leaves, structure)))

    with nn.modules.module.register_module_forward_hook(keep):
        model(x)
    return {name: [output for other, output in calls if other == name] for name in names.values()}


@alternative("05.5")
def every_call(model, x):
    @contextmanager
    def recording():
        handles = []
        try:
            for name, module in model.named_modules():
                if sum(1 for _ in module.children()) == 0:
                    seen[name] = []
                    handles.append(module.register_forward_hook(partial(keep, seen[name])))
            yield
        finally:
            while handles:
                handles.pop().remove()

    def keep(kept, module, args, output):
        kept += [copy(output)]

    def copy(value):
        kinds = {list: list, tuple: tuple, dict: lambda pairs: {key: copy(item) for key, item in pairs}}
        if torch.is_tensor(value):
            return value.detach().clone()
        if type(value) is dict:
            return kinds[dict](value.items())
        return kinds[type(value)](map(copy, value)) if type(value) in kinds else value

    seen = OrderedDict()
    with recording():
        model(x)
    return seen


@mistake("05.5", "second_names")
def every_call(model, x):
    seen = defaultdict(list)

    def keeper(name):
        seen[name]

        def keep(module, args, output):
            with torch.no_grad():
                seen[name].append(output.clone())

        return keep

    def leaves(module, path=()):
        if not list(module.children()):
            yield ".".join(path), module
        for name, child in module.named_children():
            yield from leaves(child, (*path, name))

    with ExitStack() as stack:
        for name, module in leaves(model):
            stack.callback(module.register_forward_hook(keeper(name)).remove)
        model(x)
    return dict(seen)


@alternative("05.5")
def every_call(model, x):
    seen, handles = {}, []
    try:
        for name, module in model.named_modules():
            if any(module.children()):
                continue

            def keep(module, args, output, *, kept=seen.setdefault(name, [])):
                kept.append(
                    tree_map_only(torch.Tensor, lambda t: torch.from_numpy(t.detach().numpy().copy()), output)
                )

            handles.append(module.register_forward_hook(keep))
        out = model(x)
    except BaseException:
        for handle in handles:
            handle.remove()
        raise
    else:
        for handle in handles:
            handle.remove()
    return seen


edited(
    "05.5",
    "swallows_error",
    ("            handle.remove()\n    return seen", "            handle.remove()\n        return seen"),
    points=9,
)
edited(
    "05.5",
    "swallows",
    ("    finally:", "    except KeyboardInterrupt:\n        pass\n    finally:"),
    points=9,
)
edited(
    "05.5",
    "swallows_error",
    ("    finally:", "    except RuntimeError as error:\n        print(error)\n    finally:"),
    points=9,
)
edited("05.5", "no_entries", ("        model(x)\n", ""), ("    return seen", "    model(x)\n    return seen"))
edited("05.5", "root_left_out", ("if not list(module.children())", "if name and not list(module.children())"))
edited(
    "05.5",
    "not_lists",
    ("seen[name].append(detached(output))", "seen[name] = (*seen[name], detached(output))"),
)
edited(
    "05.5",
    "state",
    ("def every_call(model, x)", "def every_call(model, x, seen={})"),
    ("seen, handles = {}, []", "handles = []"),
    ("seen[name] = []", "seen.setdefault(name, [])"),
)
edited("05.5", "forward_directly", ("        model(x)", "        model.forward(x)"))
edited(
    "05.5",
    "mode",
    ("    try:", "    was = model.training\n    model.eval()\n    try:"),
    ("    finally:", "    finally:\n        model.train(was)"),
    points=9,
)
edited("05.5", "rng", ("    try:", "    torch.manual_seed(0)\n    try:"), points=9)
edited(
    "05.5",
    "requires_grad",
    (
        "    try:",
        "    for parameter in model.parameters():\n        parameter.requires_grad = False\n    try:",
    ),
    points=9,
)
edited(
    "05.5",
    "idle_missing",
    ("seen[name] = []\n", "pass\n"),
    ("seen[name].append", "seen.setdefault(name, []).append"),
)
edited(
    "05.5",
    "idle_missing",
    ("    return seen", "    return {name: calls for name, calls in seen.items() if calls}"),
)
edited(
    "05.5",
    "not_lists",
    (
        "    return seen",
        "    return {name: torch.stack(calls) if calls else [] for name, calls in seen.items()}",
    ),
)
edited(
    "05.5",
    "first_call_only",
    ("seen[name].append(detached(output))", "seen[name] = seen[name] or [detached(output)]"),
)
edited(
    "05.5",
    "modules_missing",
    ("if not list(module.children())", "if isinstance(module, (nn.Linear, nn.ReLU, nn.Tanh))"),
)
edited(
    "05.5", "modules_missing", ("if not list(module.children())", "if list(module.parameters(recurse=False))")
)
edited("05.5", "runs_again", ("        model(x)", "        model(x)\n        model(x)"))
edited("05.5", "runs_again", ("        model(x)", "        model(x)\n        out = model.forward(x)"))
edited(
    "05.5",
    "leaves_hooks",
    ("            handle.remove()", "            pass\n        handle.remove()"),
    points=8,
)


@mistake("05.5", "runs_again", points=7)
def every_call(model, x):
    seen, handles = {}, []
    model(x)
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                seen[name] = []
                handles.append(
                    module.register_forward_hook(lambda m, a, o, n=name: seen[n].append(o.detach()))
                )
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@mistake("05.5", "unrestored", points=9)
def every_call(model, x):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name].append(tree_map_only(torch.Tensor, torch.Tensor.detach, output))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                seen[name] = []
                handles.append(module.register_forward_hook(partial(keep, name)))
        model(x)
    except Exception:
        for handle in handles:
            handle.remove()
        raise
    for handle in handles:
        handle.remove()
    return seen


_APPEND = "seen[name].append(detached(output))"
edited(
    "05.5",
    "values",
    (_APPEND, f"if not any(torch.equal(o, output) for o in seen[name]):\n            {_APPEND}"),
    named=False,
)
edited("05.5", "values", (_APPEND, f"if len(seen[name]) < 3:\n            {_APPEND}"), named=False)
edited("05.5", "other_dtype", (_APPEND, "seen[name].append(torch.tensor(output.tolist()))"))
edited("05.5", "only_training", (_APPEND, f"if module.training:\n            {_APPEND}"))
edited("05.5", "detaches_in_place", ("value.detach()", "value.detach_()"))
edited("05.5", "second_names", ("named_modules()", "named_modules(remove_duplicate=False)"))
edited("05.5", "modules_missing", ("not list(module.children())", "len(module._modules) == 0"))
edited(
    "05.5",
    "modules_missing",
    ("if not", "if not isinstance(module, (torch.nn.Identity, torch.nn.Dropout)) and not"),
)
edited(
    "05.5",
    "replaces_error",
    (
        "    finally:",
        "    except RuntimeError as e:\n        raise RuntimeError('failed') from e\n    finally:",
    ),
    points=9,
)
edited("05.5", None, ("model(x)", "model(x.detach())"))
