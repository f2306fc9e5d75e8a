"""Wrong answers to 05.3, `extracting`."""

from contextlib import ExitStack, contextmanager

from tests.answers import edited, mistake


@mistake("05.3", "not_a_manager")
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "yields_nothing")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield
    finally:
        for handle in handles:
            handle.remove()


edited("05.3", "yields_twice", ("        yield\n", "            yield seen\n"), of=extracting)


@mistake("05.3", "yields_something_else")
@contextmanager
def extracting(model, names):
    seen, handles = [], []
    try:
        for name in names:
            handles.append(
                model.get_submodule(name).register_forward_hook(lambda m, a, o: seen.append(o.detach()))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "not_on_inside")
@contextmanager
def extracting(model, names):
    seen = {}
    for name in names:
        module = model.get_submodule(name)
        with module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()})):
            pass
    yield seen


@mistake("05.3", "wrong_keys")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            handles.append(
                model.get_submodule(name).register_forward_hook(
                    lambda m, a, o: seen.update({type(m).__name__: o.detach()})
                )
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "dotted_name")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = getattr(model, name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "only_children")
@contextmanager
def extracting(model, names):
    seen, handles, children = {}, [], dict(model.named_children())
    try:
        for name in names:
            handles.append(
                children[name].register_forward_hook(
                    lambda m, a, o, name=name: seen.update({name: o.detach()})
                )
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


edited(
    "05.3",
    "changes_output",
    ("output.detach()", "output.detach()\n        return torch.zeros_like(output)"),
)


@mistake("05.3", "never_removes", points=5)
@contextmanager
def extracting(model, names):
    seen = {}
    for name in names:
        model.get_submodule(name).register_forward_hook(
            lambda m, a, o, name=name: seen.update({name: o.detach()})
        )
    yield seen


@mistake("05.3", "no_finally", points=6)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
        )
    yield seen
    for handle in handles:
        handle.remove()


@mistake("05.3", "leaves_on_bad_name", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    for name in names:
        module = model.get_submodule(name)
        handles.append(
            module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
        )
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "ignores_bad_name", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name, module in model.named_modules():
            if name in names:
                handles.append(
                    module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
                )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "swallows_error", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    except ArithmeticError:
        raise
    except AttributeError:
        raise
    except Exception as error:
        print("something went wrong:", error)
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "late_binding")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda m, a, o: seen.update({name: o.detach()})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "attached", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "removes_others", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for module in model.modules():
            module._forward_hooks.clear()


@mistake("05.3", "cuts_gradient")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.setdefault(name, o.detach()))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


edited("05.3", "cuts_gradient", ("output.detach()", "output.detach()\n        return seen[name]"))


@mistake("05.3", "returns_tuple")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: (seen.update({name: o.detach()}), o))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "wrong_arguments")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = model.get_submodule(name)
            handles.append(module.register_forward_hook(lambda output: seen.update({name: output})))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("05.3", "not_tensors")
@contextmanager
def extracting(model, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def keep(module, args, output, name=name):
                seen[name] = output.detach().numpy()

            stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
        yield seen


# One dictionary is kept for each model and its names.
@mistake("05.3", "later_block", points=7)
@contextmanager
def extracting(model, names, kept={}):  # noqa: B006
    seen = kept.setdefault((id(model), *names), {})
    with ExitStack() as stack:
        for name in names:
            hook = lambda m, a, output, name=name: seen.update({name: output.detach()})  # noqa: E731
            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        yield seen
