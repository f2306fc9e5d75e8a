"""Answers to lesson 08 that were told a cause that was not theirs, found in the seventh reading."""

from functools import partial

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu import list_hooks
from tests.answers import edited, mistake, unnamed


@mistake("08.2", "last_only")  # not a name that is looked up too late
def output_shapes(model, x):
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, child in model.named_children():
        last = name, child
    with last[1].register_forward_hook(partial(note, last[0])):
        model(x)
    return shapes


# It returns nothing: it asks the tuple of inputs for its size.
edited("08.2", "tuple_shape", ("tuple(output.shape)", "tuple(args.size())"))
edited("08.2", "tuple_shape", ("tuple(output.shape)", "tuple(args.detach().shape)"))


@unnamed("08.3", "found")  # it takes no hook for another
def remove_leaked(model, handles):
    return []


@mistake("08.3", "stops_early")
def remove_leaked(model, handles):
    known, found = {handle.id for handle in handles}, []
    for hook in list_hooks(model):
        if hook.id not in known:
            hook.remove()
            found.append(hook.path)
            break
    return found


# It registers none; it removes what is no handle; it registers for all modules.
edited(
    "08.4",
    "removes_new",
    (
        "handles[name] = module.register_forward_hook(hook)\n    return handles[name]",
        "return handles.get(name)",
    ),
)
edited("08.4", "stores_no_handle", ("handles[name].remove()", "hook.remove()"))
edited("08.4", "another_kind", ("module.register_forward_hook(hook)", "register_module_forward_hook(hook)"))


@mistake("08.4", "removes_itself")  # it stays on, and calls `hook` once
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    done = []

    def once(module, args, output):
        if not done:
            done.append(module)
            return hook(module, args, output)

    handles[name] = module.register_forward_hook(once)
    return handles[name]


@unnamed("08.5", "rows")  # two strings are not in the wrong order
def outline(model, x):
    rows, names = [], {module: name for name, module in model.named_modules()}

    def begin(module, args):
        rows.append((names.get(module, "hidden"), type(module).__name__))

    with register_module_forward_pre_hook(begin):
        model(x)
    return rows


@mistake("08.5", "own_hooks_only")  # its hooks are global, but it asks model.modules() whom to note
def outline(model, x):
    rows, running, known = [], [], {*model.modules()}

    def begin(module, args):
        if module in known:
            rows.append((len(running), type(module).__name__))
            running.append(module)

    def end(module, args, output):
        if module in known:
            running.pop()

    with register_module_forward_pre_hook(begin), register_module_forward_hook(end):
        model(x)
    return rows
