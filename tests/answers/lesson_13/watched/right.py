"""Right answers to 13.1, `watched`."""

import contextlib
import copy
import functools
import types
import weakref

import torch
from torch.nn.modules.module import register_module_forward_hook

from tests.answers import alternative


@alternative("13.1")
def watched(model, name, hook):
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager")
    layer = compiled.get_submodule(name)
    return compiled, layer.register_forward_hook(torch._dynamo.disable(hook))


@alternative("13.1")
def watched(model, name, hook):
    @torch.compiler.disable
    def outside(module, args, output):
        return hook(module, args, output)

    handle = model.get_submodule(name).register_forward_hook(outside)
    torch.compiler.reset()
    return torch.compile(model, backend="eager"), handle


@alternative("13.1")
def watched(model, name, hook):
    torch.compiler.reset()

    @torch.compiler.disable(recursive=True)
    def outside(*args):
        if (new := hook(*args)) is not None:
            return new

    layer = dict(model.named_modules())[name]
    return (torch.compile(model, backend="eager", dynamic=False), layer.register_forward_hook(outside))


@alternative("13.1")
def watched(model, name, hook):
    """A callable object."""

    class Outside:
        def __init__(self, hook):
            self.hook = hook

        @torch.compiler.disable
        def __call__(self, module, args, output):
            return self.hook(module, args, output)

    torch.compiler.reset()
    handle = functools.reduce(getattr, name.split("."), model).register_forward_hook(Outside(hook))
    return torch.compile(model, backend="eager"), handle


@alternative("13.1")
def watched(model, name, hook):
    """Among the global hooks, one that looks for the layer."""
    layer = model.get_submodule(name)

    @torch.compiler.disable
    def only_there(module, args, output):
        return hook(module, args, output) if module is layer else None

    torch.compiler.reset()
    return torch.compile(model, backend="eager"), register_module_forward_hook(only_there)


@alternative("13.1")
def watched(model, name, hook):
    """Code that nobody else has, on a twin with the same layers."""
    forward = type(model).forward
    twin = copy.copy(model)
    own = types.FunctionType(forward.__code__.replace(), forward.__globals__)
    twin.forward = types.MethodType(own, twin)
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(twin, backend="eager"), handle


@alternative("13.1")
def watched(model, name, hook):
    torch.compiler.reset()
    outside = torch.compiler.disable(functools.partial(hook))
    handle = model.get_submodule(name).register_forward_hook(outside, prepend=False)
    return [torch.compile(model, backend="eager"), handle]


@alternative("13.1")
def watched(model, name, hook):
    """A handle of one's own."""

    class Handle:
        def __init__(self, handle):
            self.handle = handle

        def remove(self):
            self.handle.remove()
            torch.compiler.reset()

    torch.compiler.reset()
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), Handle(handle)


@alternative("13.1")
def watched(model, name, hook):
    with contextlib.ExitStack() as stack:
        stack.callback(torch.compiler.reset)
        compiled = torch.compile(model, backend="eager")
        for path, layer in compiled.named_modules():
            if path.removeprefix("_orig_mod.") == name:
                handle = layer.register_forward_hook(torch.compiler.disable(hook))
    return compiled, handle


@alternative("13.1")
def watched(model, name, hook):
    @functools.wraps(hook, updated=())
    def outside(module, args, output):
        return hook(module, args, output)

    torch.compiler.reset()
    layer = model.get_submodule(name)
    return torch.compile(backend="eager")(model), layer.register_forward_hook(torch.compiler.disable(outside))


@alternative("13.1")
class Watched:
    def __new__(cls, model, name, hook):
        self = super().__new__(cls)
        self.hook = hook
        torch.compiler.reset()
        handle = model.get_submodule(name).register_forward_hook(self.fire)
        return torch.compile(model, backend="eager"), handle

    @torch.compiler.disable
    def fire(self, module, args, output):
        return self.hook(module, args, output)


@alternative("13.1")
def watched(model, name, hook):
    """Always called, also where the layer raises."""
    torch._dynamo.reset()
    register = model.get_submodule(name).register_forward_hook
    return (
        torch.compile(model, backend="eager"),
        register(torch.compiler.disable(lambda *given: hook(*given), reason="looks only")),
    )


@alternative("13.1")
def watched(model, name, hook):
    """Keywords as well, which the hook does not want."""

    def fire(module, args, kwargs, output):
        return hook(module, args, output)

    torch.compiler.reset()
    layer, fire = model.get_submodule(name), torch.compiler.disable(fire)
    return torch.compile(model, backend="eager"), layer.register_forward_hook(fire, with_kwargs=True)


@alternative("13.1")
def watched(model, name, hook):
    parent, _, last = name.rpartition(".")
    layer = model.get_submodule(parent)._modules[last]
    alive = weakref.ref(layer)

    def fire(module, args, output):
        assert alive() is module
        new = hook(module, args, output)
        return output if new is None else new

    torch.compiler.reset()
    handle = layer.register_forward_hook(torch.compiler.disable(fire))
    return torch.compile(model, backend="eager"), handle


@alternative("13.1")
def watched(model, name, hook):
    torch.compiler.reset()
    hooks = [torch.compiler.disable(hook)]
    handles = [model.get_submodule(name).register_forward_hook(hook) for hook in hooks]
    return (torch.compile(model, backend="eager"), *handles)
