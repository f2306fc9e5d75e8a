"""Right and wrong answers to the exercises of lesson 08."""

import contextlib
import copy
from collections import Counter, defaultdict
from functools import partial

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu import list_hooks, record, remove_hooks, timeline
from tests.answers import alternative, mistake

# --- 08.1 ---------------------------------------------------------------------------------------------------


@alternative("08.1")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    layers = sorted({layer for _, layer in events})
    every = [(kind, layer) for layer in layers for kind in up]
    every += [(kind, layer) for layer in reversed(layers) for kind in down]
    return [event for event in every if event in events]


@alternative("08.1")
def in_order(events):
    n = 1 + max(layer for _, layer in events)
    chain = nn.Sequential(*[nn.Linear(1, 1, bias=False) for _ in range(n)])
    fired = timeline(chain, torch.ones(1, 1, requires_grad=True), layers=nn.Linear)
    places = {(event.kind, int(event.path)): event.order for event in fired}
    return sorted(events, key=places.get)


@alternative("08.1")
def in_order(events):
    n, fired = 1 + max(layer for _, layer in events), []
    x = value = torch.ones(1, 1, requires_grad=True)
    x.register_hook(lambda grad: fired.append(("input_grad", 0)))
    for i in range(n):
        layer = nn.Linear(1, 1, bias=False)

        def note(kind, *values, i=i):
            fired.append((kind, i))

        layer.register_forward_pre_hook(partial(note, "forward_pre"))
        layer.register_forward_hook(partial(note, "forward"))
        layer.register_full_backward_pre_hook(partial(note, "backward_pre"))
        layer.register_full_backward_hook(partial(note, "backward"))
        layer.weight.register_hook(partial(note, "param_grad"))
        layer.weight.register_post_accumulate_grad_hook(partial(note, "post_accumulate"))
        value = layer(value)
        value.register_hook(partial(note, "output_grad"))
    value.sum().backward()
    return [event for event in fired if event in events]


@alternative("08.1")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    events.sort(key=lambda e: kinds.index(e[0]))
    events.sort(key=lambda e: e[1] if kinds.index(e[0]) < 2 else 100 - e[1])
    return events


@mistake("08.1", "returns_nothing")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    return events.sort(
        key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "as_given")
def in_order(events):
    up = ["forward_pre", "forward"]
    sorted(events, key=lambda e: (e[0] not in up, e[1]))
    return events


@mistake("08.1", "first_layer_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, e[1], down.index(e[0]))
    )


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: (kinds.index(e[0]), e[1]))


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(
        events, key=lambda e: (kinds.index(e[0]), e[1] if e[0] in ("forward_pre", "forward") else -e[1])
    )


@mistake("08.1", "layer_by_layer")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: (e[1], kinds.index(e[0])))


@mistake("08.1", "pre_hook_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["backward_pre", "output_grad", "param_grad", "post_accumulate", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_after_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "param_grad", "post_accumulate", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_after_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "input_grad", "param_grad", "post_accumulate"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_last")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "input_grad"]
    last = ["param_grad", "post_accumulate"]

    def place(event):
        kind, layer = event
        if kind in up:
            return 0, layer, up.index(kind)
        return (1, -layer, down.index(kind)) if kind in down else (2, -layer, last.index(kind))

    return sorted(events, key=place)


@mistake("08.1", "accumulated_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "post_accumulate", "param_grad", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "input_before_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "input_grad", "backward"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "invents_events", points=3)
def in_order(events):
    n = 1 + max(layer for _, layer in events)
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward"]
    forward = [(kind, layer) for layer in range(n) for kind in ("forward_pre", "forward")]
    backward = [(kind, layer) for layer in reversed(range(n)) for kind in down]
    return forward + backward + [("input_grad", 0)]


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: kinds.index(e[0]))


@mistake("08.1", "input_before_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["input_grad", "output_grad", "backward_pre", "param_grad", "post_accumulate", "backward"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


# --- 08.2 ---------------------------------------------------------------------------------------------------


@alternative("08.2")
def output_shapes(model, x):
    shapes = {}
    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():

            def note(module, args, output, name=name):
                shapes[name] = output.shape

            stack.enter_context(child.register_forward_hook(note))
        with torch.no_grad():
            model(x)
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    names = {child: name for name, child in model.named_children()}
    shapes = {}

    def note(module, args, output):
        if module in names:
            shapes[names[module]] = list(output.shape)

    with register_module_forward_hook(note):
        model(x)
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    names = [name for name, _ in model.named_children()]
    with record(model, layers=names) as rec:
        model(x)
    return {name: tuple(rec[name].activation.shape) for name in names}


@mistake("08.2", "late_binding")
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():

        def note(module, args, output):
            shapes[name] = tuple(output.shape)

        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "marks_modules", points=4)
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(module, args, output):
        shapes[module.__name__] = tuple(output.shape)

    for name, child in model.named_children():
        child.__name__ = name
        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "marks_modules", points=4)
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():
        child.label = name
        handles.append(child.register_forward_hook(lambda m, a, o: shapes.update({m.label: tuple(o.shape)})))
    model(x)
    [handle.remove() for handle in handles]
    return shapes


@mistake("08.2", "replaces_children", points=4)
def output_shapes(model, x):
    shapes = {}

    class Wrapper(nn.Module):
        def __init__(self, name, inner):
            super().__init__()
            self.name, self.inner = name, inner

        def forward(self, x):
            output = self.inner(x)
            shapes[self.name] = tuple(output.shape)
            return output

    for name, child in list(model.named_children()):
        setattr(model, name, Wrapper(name, child))
    model(x)
    return shapes


@mistake("08.2", "leaves_hooks", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        child.register_forward_hook(lambda m, a, o, name=name: shapes.update({name: tuple(o.shape)}))
    model(x)
    return shapes


@mistake("08.2", "class_names")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(module, args, output):
        shapes[type(module).__name__] = tuple(output.shape)

    for child in model.children():
        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "every_module")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, module in model.named_modules():
        handles.append(module.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "keeps_tensors")
def output_shapes(model, x):
    outputs, handles = {}, []

    def note(name, module, args, output):
        outputs[name] = output.detach()

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return outputs


@mistake("08.2", "input_shapes")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(name, module, output, *rest):
        shapes[name] = tuple(output[0].shape)

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "returns_nothing")
def output_shapes(model, x):
    def note(name, module, args, output):
        print(name, tuple(output.shape))

    handles = [child.register_forward_hook(partial(note, name)) for name, child in model.named_children()]
    model(x)
    for handle in handles:
        handle.remove()


@mistake("08.2", "never_runs")
def output_shapes(model, x):
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, child in model.named_children():
        with child.register_forward_hook(partial(note, name)):
            pass
    model(x)
    return shapes


@mistake("08.2", "chains_children")
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        x = child(x)
        shapes[name] = tuple(x.shape)
    return shapes


@mistake("08.2", "hook_returns")
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():
        handles.append(
            child.register_forward_hook(lambda m, a, o, name=name: shapes.setdefault(name, tuple(o.shape)))
        )
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    twin, shapes = copy.deepcopy(model), {}
    for name, child in twin.named_children():
        child.register_forward_hook(lambda m, a, output, name=name: shapes.update({name: output.shape}))
    twin(x)
    return shapes


@mistake("08.2", "switches_mode", points=4)
def output_shapes(model, x):
    shapes = {}
    model.eval()
    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():
            hook = lambda m, a, output, name=name: shapes.update({name: tuple(output.shape)})  # noqa: E731
            stack.enter_context(child.register_forward_hook(hook))
        model(x)
    return shapes


@mistake("08.2", "runs_again", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        hook = lambda m, a, output, name=name: shapes.update({name: tuple(output.shape)})  # noqa: E731
        with child.register_forward_hook(hook):
            model(x)
    return shapes


@mistake("08.2", "removes_others", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        child.register_forward_hook(lambda m, a, o, name=name: shapes.update({name: tuple(o.shape)}))
    model(x)
    remove_hooks(model, owner="user")
    return shapes


# --- 08.3 ---------------------------------------------------------------------------------------------------


@alternative("08.3")
def remove_leaked(model, handles):
    known = [handle.id for handle in handles]
    names = []
    for name, module in model.named_modules():
        tables = (module._forward_pre_hooks, module._forward_hooks)
        for table in (*tables, module._backward_pre_hooks, module._backward_hooks):
            for identity in list(table):
                if identity not in known:
                    del table[identity]
                    names.append(name)
    return names


@alternative("08.3")
def remove_leaked(model, handles):
    names = []
    for hook in list_hooks(model):
        if all(hook.id != handle.id for handle in handles):
            names.append(hook.path)
            hook.remove()
    return names


@mistake("08.3", "returns_nothing")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()


@mistake("08.3", "returns_hooks")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [hook for hook in list_hooks(model) if hook.id not in known]
    for hook in leaked:
        hook.remove()
    return leaked


@mistake("08.3", "removes_all")
def remove_leaked(model, handles):
    return [hook.path for hook in remove_hooks(model, owner="user")]


@mistake("08.3", "removes_all", points=3)
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [hook.path for hook in list_hooks(model) if hook.id not in known]
    for module in model.modules():
        for table in (module._forward_hooks, module._forward_pre_hooks):
            table.clear()
        for table in (module._backward_hooks, module._backward_pre_hooks):
            table.clear()
    return leaked


@mistake("08.3", "wrong_way_round")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    found = [hook for hook in list_hooks(model) if hook.id in known]
    for hook in found:
        hook.remove()
    return [hook.path for hook in found]


@mistake("08.3", "misses_kinds")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    names = []
    for name, module in model.named_modules():
        for identity in list(module._forward_hooks):
            if identity not in known:
                del module._forward_hooks[identity]
                names.append(name)
    return names


@mistake("08.3", "misses_kinds")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [h for h in list_hooks(model) if h.kind in ("forward", "forward_pre") and h.id not in known]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


@mistake("08.3", "top_level_only")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    names = []
    for name, module in model.named_children():
        tables = (module._forward_pre_hooks, module._forward_hooks)
        for table in (*tables, module._backward_pre_hooks, module._backward_hooks):
            for identity in list(table):
                if identity not in known:
                    del table[identity]
                    names.append(name)
    return names


@mistake("08.3", "twin_missed")
def remove_leaked(model, handles):
    known = [handle.hooks_dict_ref()[handle.id] for handle in handles]
    leaked = [hook for hook in list_hooks(model) if hook.callable not in known]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


@mistake("08.3", "not_removed", points=3)
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    return [hook.path for hook in list_hooks(model) if hook.id not in known]


@mistake("08.3", "changed_while_iterating")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    names = []
    for name, module in model.named_modules():
        tables = (module._forward_pre_hooks, module._forward_hooks)
        for table in (*tables, module._backward_pre_hooks, module._backward_hooks):
            for identity in table:
                if identity not in known:
                    table.pop(identity)
                    names.append(name)
    return names


@mistake("08.3", "twin_missed")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    modules = {hook.path for hook in list_hooks(model) if hook.id in known}
    leaked = [hook for hook in list_hooks(model) if hook.path not in modules]
    for hook in leaked:
        hook.remove()
    return [hook.path for hook in leaked]


@mistake("08.3", "wrong_way_round", points=2)
def remove_leaked(model, handles):
    for handle in handles:
        handle.remove()
    return [hook.path for hook in list_hooks(model)]


@mistake("08.3", "names_once")
def remove_leaked(model, handles):
    known, names = {handle.id for handle in handles}, set()
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()
            names.add(hook.path)
    return names


@mistake("08.3", "names_once")
def remove_leaked(model, handles):
    known, names = {handle.id for handle in handles}, []
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()
            if hook.path not in names:
                names.append(hook.path)
    return names


@mistake("08.3", "part_of_the_name")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    leaked = [hook for hook in list_hooks(model) if hook.id not in known]
    for hook in leaked:
        hook.remove()
    return [hook.path.split(".")[-1] for hook in leaked]


@mistake("08.3", "part_of_the_name")
def remove_leaked(model, handles):
    known, names = {handle.id for handle in handles}, []
    for name, child in model.named_children():
        for hook in list_hooks(child):
            if hook.id not in known:
                hook.remove()
                names.append(name)
    return names


@mistake("08.3", "listed_too_late")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()
    return [hook.path for hook in list_hooks(model) if hook.id not in known]


@mistake("08.3", "stops_early")
def remove_leaked(model, handles):
    known = {handle.id for handle in handles}
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()
            return [hook.path]


# --- 08.4 ---------------------------------------------------------------------------------------------------


@alternative("08.4")
def register_once(handles, name, module, hook):
    old = handles.pop(name, None)
    if old is not None:
        old.remove()
    handle = module.register_forward_hook(hook)
    handles[name] = handle
    return handle


@alternative("08.4")
def register_once(handles, name, module, hook):
    handle = module.register_forward_hook(hook)
    if name in handles:
        handles[name].remove()
    handles[name] = handle
    return handle


@alternative("08.4")
def register_once(handles, name, module, hook):
    try:
        handles[name].remove()
    except KeyError:
        pass
    handles.update({name: module.register_forward_hook(hook)})
    return handles[name]


@mistake("08.4", "stacks")
def register_once(handles, name, module, hook):
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "not_stored")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    return module.register_forward_hook(hook)


@mistake("08.4", "not_stored")
def register_once(handles, name, module, hook):
    handles = {}
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "keeps_old")
def register_once(handles, name, module, hook):
    if name not in handles:
        handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "clears_module")
def register_once(handles, name, module, hook):
    module._forward_hooks.clear()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "removes_new")
def register_once(handles, name, module, hook):
    handles[name] = module.register_forward_hook(hook)
    if name in handles:
        handles[name].remove()
    return handles[name]


@mistake("08.4", "removes_new")
def register_once(handles, name, module, hook):
    with module.register_forward_hook(hook) as handle:
        handles[name] = handle
    return handle


@mistake("08.4", "one_for_all", points=3)
def register_once(handles, name, module, hook):
    for handle in handles.values():
        handle.remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "stays_on_old_module", points=3)
def register_once(handles, name, module, hook):
    if name in handles:
        module._forward_hooks.pop(handles[name].id, None)
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "no_handle", points=4)
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook)


@mistake("08.4", "no_old_one")
def register_once(handles, name, module, hook):
    handles[name].remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "no_old_one")
def register_once(handles, name, module, hook):
    handles.pop(name).remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "calls_now")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(hook())
    return handles[name]


@mistake("08.4", "clears_module")
def register_once(handles, name, module, hook):
    remove_hooks(module, owner="user")
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "either_or")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    else:
        handles[name] = module.register_forward_hook(hook)
    return handles[name]


@mistake("08.4", "another_kind")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_pre_hook(hook)
    return handles[name]


@mistake("08.4", "another_kind")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_full_backward_hook(hook)
    return handles[name]


@mistake("08.4", "stores_no_handle")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = hook
    return module.register_forward_hook(hook)


# --- 08.5 ---------------------------------------------------------------------------------------------------


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
    modules = set()
    with register_module_forward_pre_hook(lambda module, args: modules.add(module)):
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
