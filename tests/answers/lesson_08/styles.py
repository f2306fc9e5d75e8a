"""Right answers to the exercises of lesson 08 in further styles."""

import contextlib
import functools
import heapq
import itertools
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu import list_hooks
from tests.answers import alternative


@alternative("08.1")
class InOrder(list):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )

    def __init__(self, events):
        super().__init__(sorted(events, key=self.place))

    def place(self, event):
        n = self.kinds.index(event[0])
        return n > 1, event[1] if n < 2 else -event[1], n


@alternative("08.1")
def in_order(events):
    rank = dict(output_grad=0, backward_pre=1, param_grad=2, post_accumulate=3, backward=4, input_grad=5)
    forward = heapq.nsmallest(
        len(events),
        [e for e in events if e[0].startswith("forward")],
        key=lambda e: (e[1], e[0] == "forward"),
    )
    layers = defaultdict(list)
    for kind, layer in events:
        if kind in rank:
            layers[layer].append(kind)
    return [
        *forward,
        *((kind, layer) for layer in sorted(layers)[::-1] for kind in sorted(layers[layer], key=rank.get)),
    ]


@alternative("08.1")
def in_order(events):
    kinds = "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad"
    place = {kind: n for n, kind in enumerate(kinds.split())}

    def compare(one, other):
        a, b = place[one[0]], place[other[0]]
        if (a < 2) != (b < 2):
            return -1 if a < 2 else 1
        if one[1] != other[1]:
            return one[1] - other[1] if a < 2 else other[1] - one[1]
        return a - b

    return sorted(events, key=functools.cmp_to_key(compare))


@alternative("08.1")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    n = np.array([kinds.index(kind) for kind, _ in events])
    layers = np.array([layer for _, layer in events])
    return [events[i] for i in np.lexsort((n, np.where(n < 2, layers, -layers), n > 1))]


@alternative("08.1")
def in_order(events):
    def walk(layer, n):
        if layer < n:
            yield from [("forward_pre", layer), ("forward", layer)]
            yield from walk(layer + 1, n)
            for kind in ("output_grad", "backward_pre", "param_grad", "post_accumulate", "backward"):
                yield kind, layer
            if layer == 0:
                yield "input_grad", 0

    given = set(events)
    return list(filter(given.__contains__, walk(0, max(layer for _, layer in given) + 1)))


@alternative("08.2")
def output_shapes(model, x):
    shapes = OrderedDict()

    class Note:
        def __init__(self, name):
            self.name = name

        def __call__(self, module, args, output):
            shapes[self.name] = output.size()

    handles = []
    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(Note(name)))
        model(x)
    finally:
        while handles:
            handles.pop().remove()
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    @contextlib.contextmanager
    def noting():
        seen = weakref.WeakKeyDictionary()
        handle = register_module_forward_hook(
            lambda module, args, out: seen.update({module: tuple(out.shape)})
        )
        try:
            yield seen
        finally:
            handle.remove()

    with noting() as seen:
        model(x)
    return {name: seen[child] for name, child in model.named_children()}


@alternative("08.2")
def output_shapes(model, x):
    shapes = {}
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with contextlib.ExitStack() as stack:
        for module, training in modes:
            stack.callback(setattr, module, "training", training)
        for name, child in model.named_children():
            stack.callback(
                child.register_forward_hook(
                    lambda m, a, out, *, to=name: shapes.__setitem__(to, np.shape(out.detach().numpy()))
                ).remove
            )
        model(x)
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    shapes = {}

    def wrapped(name, forward, *args, **kwargs):
        output = forward(*args, **kwargs)
        shapes[name] = tuple(output.shape)
        return output

    children = dict(model.named_children())
    for name, child in children.items():
        child.forward = partial(wrapped, name, child.forward)
    try:
        model(x)
    finally:
        for child in children.values():
            del child.forward
    return shapes


@alternative("08.2")
@torch.no_grad()
def output_shapes(model, x):
    kept, names = deque(), {id(child): name for name, child in model.named_children()}
    (handles := []).extend(
        child.register_forward_hook(lambda m, a, out: kept.append((names[id(m)], list(map(int, out.shape)))))
        for child in model.children()
    )
    try:
        model(x)
    finally:
        [handle.remove() for handle in handles]
    return {name: tuple(shape) for name, shape in kept}


@alternative("08.3")
def remove_leaked(model, handles):
    known = frozenset(handle.id for handle in handles)
    return [h.path for h in list_hooks(model) if h.id not in known and h.remove() is None]


@alternative("08.3")
def remove_leaked(model, handles):
    needed = {(id(handle.hooks_dict_ref()), handle.id) for handle in handles}
    names = Counter()
    for name, module in model.named_modules():
        for attribute, table in vars(module).items():
            if attribute.endswith("_hooks") and table:
                for key in [key for key in table if (id(table), key) not in needed]:
                    table.pop(key)
                    names[name] += 1
    return list(names.elements())


@alternative("08.3")
def remove_leaked(model, handles):
    def leaked():
        for hook in list_hooks(model):
            if any(hook.id == handle.id for handle in handles):
                continue
            hook.remove()
            yield hook.path

    return sorted(leaked())


@alternative("08.3")
def remove_leaked(model, handles):
    hooks = {hook.id: hook for hook in list_hooks(model)}
    for handle in handles:
        del hooks[handle.id]
    return [(hook.remove(), hook.path)[1] for hook in hooks.values()]


@alternative("08.3")
def remove_leaked(model, handles):
    class Names(list):
        pass

    names, known = Names(), {handle.id for handle in handles}

    def visit(module, path=""):
        for table in (t for key, t in vars(module).items() if key.endswith("_hooks") and isinstance(t, dict)):
            for key in set(table) - known:
                del table[key]
                names.append(path)
        for name, child in module.named_children():
            visit(child, f"{path}.{name}" if path else name)

    visit(model)
    return names


@alternative("08.4")
def register_once(handles, name, module, hook):
    with contextlib.suppress(KeyError):
        handles.pop(name).remove()
    return handles.setdefault(name, module.register_forward_hook(hook))


@alternative("08.4")
def register_once(handles, name, module, hook):
    with contextlib.ExitStack() as stack:
        if name in handles:
            stack.enter_context(handles[name])
        handles[name] = handle = module.register_forward_hook(hook)
    return handle


@alternative("08.4")
@torch.enable_grad()
def register_once(handles, name, module, hook):
    match handles:
        case {**known} if (old := known.get(name)) is not None:
            old.hooks_dict_ref().pop(old.id, None)
    handles |= {name: module.register_forward_hook(lambda module, args, output: hook(module, args, output))}
    return handles[name]


@alternative("08.4")
def register_once(handles, name, module, hook):
    getattr(handles.get(name), "remove", lambda: None)()
    handles.__setitem__(name, module.register_forward_hook(partial(hook)))
    return handles.get(name)


@alternative("08.5")
class Outline(list):
    def __init__(self, model, x):
        super().__init__()
        self.depth = 0
        with contextlib.ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(self.begin).remove)
            stack.callback(register_module_forward_hook(self.end, always_call=True).remove)
            model(x)

    def begin(self, module, args):
        self.append((self.depth, module.__class__.__name__))
        self.depth += 1

    def end(self, module, args, output):
        self.depth -= 1


@alternative("08.5")
def outline(model, x):
    rows, depths = [], itertools.count()
    stack = [next(depths)]

    def begin(module, args):
        rows.append((stack[-1], type(module).__name__))
        stack.append(stack[-1] + 1)

    def end(module, args, output):
        del stack[-1]

    @contextlib.contextmanager
    def watching():
        first, second = register_module_forward_pre_hook(begin), register_module_forward_hook(end)
        try:
            yield
        finally:
            first.remove()
            second.remove()

    with watching():
        model(x)
    return rows


@alternative("08.5")
def outline(model, x):
    rows, call, depth = [], nn.Module.__call__, 0

    def noting(module, *args, **kwargs):
        nonlocal depth
        rows.append((depth, module._get_name()))
        depth += 1
        try:
            return call(module, *args, **kwargs)
        finally:
            depth -= 1

    with mock.patch.object(nn.Module, "__call__", noting):
        model(x)
    return rows


@alternative("08.5")
def outline(model, x):
    calls, latest = [], None  # of each call: (module, the call that it is inside)

    def begin(module, args):
        nonlocal latest
        latest = (module, latest)
        calls.append(latest)

    def end(module, args, output):
        nonlocal latest
        _, latest = latest

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)

    def depth(call):
        return 0 if call[1] is None else 1 + depth(call[1])

    return tuple((depth(call), type(call[0]).__name__) for call in calls)
