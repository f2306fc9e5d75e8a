"""Answers to 08.3, `remove_leaked`."""

from hookedu import list_hooks, remove_hooks
from tests.answers import alternative, mistake


@alternative("08.3")
def remove_leaked(model, handles):
    known = [handle.id for handle in handles]
    names = []
    for name, module in model.named_modules():
        for table in [table for attribute, table in vars(module).items() if attribute.endswith("_hooks")]:
            for identity in list(table):
                if identity not in known:
                    del table[identity]
                    names.append(name)
    return names


@alternative("08.3")
def remove_leaked(model, handles):
    leaked = [hook for hook in list_hooks(model) if hook.id not in [handle.id for handle in handles]]
    for hook in leaked:
        hook.remove()
    return tuple(hook.path for hook in leaked)


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
        for attribute, table in vars(module).items():
            if attribute.endswith("_hooks"):
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
