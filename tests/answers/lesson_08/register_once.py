"""Answers to 08.4, `register_once`."""

from hookedu import remove_hooks
from tests.answers import alternative, mistake


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


@mistake("08.4", "changes_arguments")
def register_once(handles, name, module, hook):
    if name in handles:
        handles[name].remove()
    handles[name] = module.register_forward_hook(lambda m, args, output: hook(m, args, output.clone()))
    return handles[name]
