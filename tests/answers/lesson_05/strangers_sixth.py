"""What the sixth strangers tried on lesson 05: wrong answers that had been accepted or misjudged."""

from contextlib import contextmanager
from functools import partial

from torch.nn.modules.module import register_module_forward_hook

from tests.answers import alternative, edited, mistake


@mistake("05.1", "other_modules")
def capture(module, seen):
    def hook(m, args, output):
        if isinstance(m, type(module)):
            seen.append((args[0], output.detach()))

    return register_module_forward_hook(hook)


@alternative("05.1")
def capture(module, seen):
    return register_module_forward_hook(
        lambda m, args, output: seen.append((*args, output)) if m is module else None
    )


@mistake("05.1", "one_list")
def capture(module, seen, sinks={}):
    sinks[module] = seen
    return module.register_forward_hook(lambda m, args, output: sinks[m].append((args[0], output.detach())))


edited("05.1", "sees", ("args[0], output)", "args[0], output.half().to(output.dtype))"), named=False)
edited("05.1", "each_list", ("args[0], output))", "args[0], output))\n        del seen[:-8]"), named=False)

_LARGEST = "(output - own).abs().max().item()"
edited("05.2", "too_coarse", (_LARGEST, f"0.0 if output.allclose(own, atol=1e-3) else {_LARGEST}"))
edited("05.2", "too_coarse", (_LARGEST, f"round({_LARGEST}, 4)"))
edited("05.2", "too_coarse", (_LARGEST, "(output.float() - own.float()).abs().max().item()"))


@mistake("05.3", "never_removes", points=6)
@contextmanager
def extracting(model, names):  # takes off whatever hook came last
    seen, modules = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            modules.append(model.get_submodule(name))
            modules[-1].register_forward_hook(partial(keep, name))
        yield seen
    finally:
        for module in modules:
            module._forward_hooks.popitem()


@mistake("05.3", "only_at_end")
@contextmanager
def extracting(model, names):
    seen, kept, handles = {}, {}, []

    def keep(name, module, args, output):
        kept[name] = output.detach()

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        seen.update(kept)


@mistake("05.4", "cancels_earlier")
def steer(module, direction, strength, active={}):
    if module in active:
        active[module].remove()
    active[module] = module.register_forward_hook(lambda m, a, output: output + strength * direction)
    return active[module]


_LEAF = "not list(module.children())"
edited("05.5", "root_left_out", (_LEAF, f"{_LEAF} and type(module).__module__.startswith('torch.nn')"))
edited("05.5", "modules_missing", (_LEAF, f"{_LEAF} and type(module).__name__ != 'ModuleList'"))
