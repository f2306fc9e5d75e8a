"""Further wrong answers to the exercises of lesson 08 that readers wrote without knowing the checks."""

import contextlib

from hookedu import list_hooks
from tests.answers import mistake, unnamed


@unnamed("08.2", "shapes")
def output_shapes(model, x):
    names = {type(child): name for name, child in model.named_children()}
    shapes = {}

    def note(module, args, output):
        shapes[names[type(module)]] = tuple(output.shape)

    with contextlib.ExitStack() as stack:
        for child in model.children():
            stack.enter_context(child.register_forward_hook(note))
        model(x)
    return shapes


@mistake("08.4", "overwrites_first")
def register_once(handles, name, module, hook):
    stacked = name in handles
    handles[name] = module.register_forward_hook(hook)
    if stacked:
        handles[name].remove()
    return handles[name]


@mistake("08.4", "overwrites_first")
def register_last(handles, name, module, hook):
    handle = module.register_forward_hook(hook)
    if name in handles:
        list_hooks(module)[-1].remove()
    handles[name] = handle
    return handle


@unnamed("08.4", "again")
def register_in_front(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_pre_hook(
        lambda module, args: hook(module, args, module.forward(*args))
    )
    return handles[name]
