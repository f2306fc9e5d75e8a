"""Answers to 02.2, `watch_many`."""

from functools import partial

from tests.answers import alternative, edited, mistake, unnamed


@alternative("02.2")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    return handles


@alternative("02.2")
def watch_many(tensors, seen):
    return [
        t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if t.requires_grad
    ]


@alternative("02.2")
def watch_many(tensors, seen):
    def keeper(name):
        def keep(grad):
            seen[name] = grad.clone()

        return keep

    return list(t.register_hook(keeper(n)) for n, t in tensors.items() if t.requires_grad)


@mistake("02.2", "returns_tuple", points=2)
def watch_many(tensors, seen):
    return tuple(t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad)


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in list(tensors.items())[:3]:
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    return handles


@mistake("02.2", "late_binding")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:

            def keep(grad):
                seen[name] = grad

            handles.append(tensor.register_hook(keep))
    return handles


@mistake("02.2", "late_binding")
def watch_many(tensors, seen):
    return [
        t.register_hook(lambda g: seen.update({name: g})) for name, t in tensors.items() if t.requires_grad
    ]


@mistake("02.2", "returns_in_loop")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
        return handles


@mistake("02.2", "hooks_everything")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()]


@mistake("02.2", "keeps_nothing")
def watch_many(tensors, seen):
    def keep(grad, name):
        seen = {name: grad}

    return [t.register_hook(partial(keep, name=n)) for n, t in tensors.items() if t.requires_grad]


@mistake("02.2", "wrong_keys")
def watch_many(tensors, seen):
    handles = []
    for i, tensor in enumerate(tensors.values()):
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, i)))
    return handles


@mistake("02.2", "wrong_keys")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, t)) for t in tensors.values() if t.requires_grad]


@mistake("02.2", "one_handle", points=2)
def watch_many(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handle = tensor.register_hook(partial(seen.__setitem__, name))
    return handle


@mistake("02.2", "no_handle", points=2)
def watch_many(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            tensor.register_hook(partial(seen.__setitem__, name))


@mistake("02.2", "changes_gradient")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad
        return grad / grad.norm()

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "calls_now")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad

    return [t.register_hook(keep(name, t.grad)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "two_arguments")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = grad

    return [t.register_hook(keep) for t in tensors.values() if t.requires_grad]


@mistake("02.2", "skips_leaves")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items() if not t.is_leaf]


@mistake("02.2", "keeps_the_first")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen.setdefault(name, grad)

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "changes_gradient")
def watch_many(tensors, seen):
    handles = []
    for name, t in tensors.items():
        if t.requires_grad:  # setdefault() returns the old gradient, which replaces the new one
            handles.append(t.register_hook(lambda grad, name=name: seen.setdefault(name, grad)))
    return handles


@mistake("02.2", "adds_up")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen[name] = seen.get(name, 0) + grad

    return [t.register_hook(partial(keep, name)) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "switches_on")
def watch_many(tensors, seen):
    return [t.requires_grad_().register_hook(partial(seen.__setitem__, name)) for name, t in tensors.items()]


@mistake("02.2", "none_in_list", points=2)
def watch_many(tensors, seen):
    return [
        t.register_hook(partial(seen.__setitem__, name)) if t.requires_grad else None
        for name, t in tensors.items()
    ]


@mistake("02.2", "lazy_generator")
def watch_many(tensors, seen):
    return (t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad)


@mistake("02.2", "lazy_generator")
def watch_many(tensors, seen):
    needed = [n for n, t in tensors.items() if t.requires_grad]
    return map(lambda n: tensors[n].register_hook(partial(seen.__setitem__, n)), needed)


@mistake("02.2", "lazy_generator")
def watch_many(tensors, seen):
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            yield tensor.register_hook(partial(seen.__setitem__, name))


@mistake("02.2", "not_registered")
def watch_many(tensors, seen):
    return [partial(seen.__setitem__, name) for name, t in tensors.items() if t.requires_grad]


@mistake("02.2", "literal_key")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update(name=grad)))
    return handles


@mistake("02.2", "literal_key")
def watch_many(tensors, seen):
    return [t.register_hook(partial(seen.__setitem__, "name")) for t in tensors.values() if t.requires_grad]


@mistake("02.2", "stops_at_frozen")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            break
        handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
    return handles


@mistake("02.2", "returns_in_loop")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
            return handles


@mistake("02.2", "registers_after_loop")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:

            def keep(grad, name=name):
                seen[name] = grad

    handles.append(tensor.register_hook(keep))
    return handles


@mistake("02.2", "local_seen")
def watch_many(tensors, seen):
    def keep(name, grad):
        seen |= {name: grad}  # noqa: F823

    return [t.register_hook(partial(keep, n)) for n, t in tensors.items() if t.requires_grad]


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    return [
        t.register_hook(lambda grad, n=n: seen.update({n: grad.norm()}))
        for n, t in tensors.items()
        if t.requires_grad
    ]


@unnamed("02.2", "sees")
def watch_many(tensors, seen):
    return [
        t.register_hook(lambda grad, n=n: seen.setdefault(n, []).append(grad))
        for n, t in tensors.items()
        if t.requires_grad
    ]


@unnamed("02.2", "sees")
def watch_many(tensors, seen):  # the second name of one tensor is lost
    names = {tensor: name for name, tensor in tensors.items()}
    return [t.register_hook(partial(seen.__setitem__, n)) for t, n in names.items() if t.requires_grad]


@mistake("02.2", "no_handle", points=2)
def watch_many(tensors, seen):
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    return [handle.remove for handle in handles]


@mistake("02.2", "no_handle", points=2)
def watch_many(tensors, seen):
    return {n: t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad}


@unnamed("02.2", "handle", points=2)
def watch_many(tensors, seen):
    handles = [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]
    return handles[:1] * len(handles)


@mistake("02.2", "hooks", points=2)
def watch_many(tensors, seen):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.register_hook(lambda grad: None)
    return [t.register_hook(partial(seen.__setitem__, n)) for n, t in tensors.items() if t.requires_grad]


@mistake("02.2", "argument", points=2)
def watch_many(tensors, seen):
    handles = []
    for name in list(tensors):
        tensor = tensors.pop(name)
        if tensor.requires_grad:
            handles.append(tensor.register_hook(partial(seen.__setitem__, name)))
    return handles


edited("02.2", "skips_zero", ("seen[name] = grad", "seen.update({name: grad} if grad.any() else {})"))
edited(
    "02.2",
    "writes_over",
    ("seen[name] = grad", "seen[name].copy_(grad) if name in seen else seen.update({name: grad})"),
)


# The names that `seen` has already are not watched.
@mistake("02.2", "skips_known")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad and name not in seen:
            handles.append(tensor.register_hook(lambda grad, name=name: seen.update({name: grad})))
    return handles


@mistake("02.2", "writes_over")
def watch_many(tensors, seen):
    handles = []
    for name, tensor in tensors.items():
        if tensor.requires_grad:

            def keep(grad, name=name):
                if name in seen and seen[name].shape == grad.shape:
                    seen[name].copy_(grad)
                else:
                    seen[name] = grad
                return grad

            handles.append(tensor.register_hook(keep))
    return handles
