"""Wrong answers to the exercises of lesson 08 that readers wrote without knowing the checks."""

from functools import partial

from torch.nn.modules.module import register_module_forward_hook

from hookedu import list_hooks
from tests.answers import edited, mistake, unnamed

edited("08.1", "last_layer_first", ("(0, layer,", "(0, -layer,"))
edited("08.1", "last_layer_first", ("sorted(events, key=place)", "sorted(events, key=place, reverse=True)"))
edited("08.1", "first_layer_first", ("(1, -layer, down", "(1, layer, -down"))


@mistake("08.1", "takes_away", points=3)
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    found = []
    while events:
        first = min(
            events,
            key=lambda e: (
                kinds.index(e[0]) > 1,
                e[1] * (1 if kinds.index(e[0]) < 2 else -1),
                kinds.index(e[0]),
            ),
        )
        events.remove(first)
        found.append(first)
    return found


@unnamed("08.1", "order")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["backward_pre", "output_grad", "param_grad", "backward", "post_accumulate", "input_grad"]
    first = sorted((e for e in events if e[0] in up), key=lambda e: (e[1], up.index(e[0])))
    return first + sorted((e for e in events if e[0] in down), key=lambda e: (-e[1], down.index(e[0])))


@unnamed("08.1", "order")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    first = sorted(e for e in events if e[0] in kinds[:2])
    first.sort(key=lambda e: (str(e[1]), kinds.index(e[0])))
    return first + sorted((e for e in events if e[0] in kinds[2:]), key=lambda e: (-e[1], kinds.index(e[0])))


@unnamed("08.1", "order")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    first = sorted(e for e in events if e[0] in kinds[:2])
    rest = sorted((e for e in events if e[0] in kinds[2:]), key=lambda e: (-e[1], kinds.index(e[0])))
    return [kind for kind, layer in sorted(first, key=lambda e: (e[1], kinds.index(e[0]))) + rest]


@mistake("08.1", "loses_events", points=3)
def in_order(events):
    n = len({layer for _, layer in events})
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    every = [(kind, layer) for layer in range(n) for kind in ("forward_pre", "forward")]
    every += [(kind, layer) for layer in reversed(range(n)) for kind in down]
    return [event for event in every if event in events]


@unnamed("08.2", "shapes")
def output_shapes(model, x):
    shapes = []
    with register_module_forward_hook(lambda m, a, out: shapes.append((id(m), tuple(out.shape)))):
        model(x)
    children = {id(child) for child in model.children()}
    names = [name for name, _ in model.named_children()]
    return dict(zip(names, [shape for module, shape in shapes if module in children], strict=True))


edited("08.2", "keeps_earlier", ("(model, x):", "(model, x, shapes={}):"), ("    shapes = {}\n", ""))
edited(
    "08.2",
    "mode",
    ("    try:\n", "    was = model.training\n    model.eval()\n    try:\n"),
    ("            handle.remove()\n", "            handle.remove()\n        model.train(was)\n"),
    points=4,
)
edited(
    "08.2",
    "mode",
    ("    try:\n", "    model.eval()\n    try:\n"),
    ("            handle.remove()\n", "            handle.remove()\n        model.train()\n"),
    points=4,
)
edited("08.2", "runs_again", ("    try:\n", "    model(x)  # warm up\n    try:\n"), points=4)
edited(
    "08.2",
    "swallows",
    ("    finally:\n", "    except RuntimeError:\n        print('failed')\n    finally:\n"),
    points=4,
)
edited(
    "08.2",
    "hooks",
    ("            handle.remove()\n", "            handle.remove()\n            break\n"),
    points=4,
)


@mistake("08.2", "hooks", points=4)
def output_shapes(model, x):
    names, shapes = {child: name for name, child in model.named_children()}, {}

    def note(module, args, output):
        if module in names:
            shapes[names[module]] = tuple(output.shape)

    register_module_forward_hook(note)
    model(x)
    return shapes


@mistake("08.2", "others", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        child.register_forward_hook(partial(lambda n, m, a, out: shapes.update({n: tuple(out.shape)}), name))
    model(x)
    for module in model.modules():
        module._forward_hooks.clear()
    return shapes


edited("08.3", "uses_up", ("    return", "    handles.clear()\n    return"), points=3)
edited("08.3", "not_removed", ("hook.remove()", "hook.remove"), points=3)
edited(
    "08.3",
    "stops_early",
    (
        "    for hook in leaked:\n        hook.remove()\n    return [hook.path for hook in leaked]",
        "    for hook in leaked:\n        hook.remove()\n        return [hook.path]",
    ),
)


@mistake("08.3", "misses_kinds")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [hook for hook in list_hooks(model) if "backward" not in hook.kind and hook.id not in known]
    leaked += [hook for hook in list_hooks(model) if hook.kind == "backward_pre"]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


@mistake("08.3", "misses_model")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [hook for hook in list_hooks(model) if hook.path and hook.id not in known]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


@mistake("08.3", "twin_missed")
def remove_leaked(model, handles):
    known = [handle.hooks_dict_ref() for handle in handles]
    names = []
    for hook in list_hooks(model):
        if not any(hook.id in table for table in known):
            hook.remove()
            names.append(hook.path)
    return names


edited(
    "08.4",
    "returns_another",
    ("    return handles[name]", "    return old or handles[name]"),
    ("    if name", "    old = handles.get(name)\n    if name"),
    points=4,
)
edited(
    "08.4",
    "loses_names",
    ("handles[name].remove()\n", "handles[name].remove()\n        handles.clear()\n"),
    points=4,
)
edited("08.4", "stacks", ("        handles[name].remove()\n", "        del handles[name]\n"))
edited("08.4", "stacks", ("        handles[name].remove()\n", "        handles[name].remove\n"))
edited("08.4", "calls_now", ("forward_hook(hook)", "forward_hook(hook(module, None, None))"))


@mistake("08.4", "one_dictionary", points=3)
def register_once(handles, name, module, hook, own={}):  # noqa: B006
    if name in own:
        own[name].remove()
    handles[name] = own[name] = module.register_forward_hook(hook)
    return own[name]


@mistake("08.4", "stacks")
def register_once(handles, name, module, hook):
    for key, other in list(module._forward_hooks.items()):
        if other is hook:
            del module._forward_hooks[key]
    handles[name] = module.register_forward_hook(hook)
    return handles[name]
