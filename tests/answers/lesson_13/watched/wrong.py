"""Wrong answers to 13.1, `watched`."""

import contextlib

import torch
from torch.nn.modules.module import register_module_forward_hook

from tests.answers import edited, mistake, unnamed

edited("13.1", "shares_code", ("    torch.compiler.reset()", "    ..."))
edited("13.1", "recompiles", ("torch.compiler.disable(hook)", "hook"), points=9)
edited("13.1", "recompiles", ("disable(hook)", "disable(hook, recursive=False)"), points=9)
edited("13.1", "returns_one", (', backend="eager"), handle', ', backend="eager")'))
edited("13.1", "returns_one", ('return torch.compile(model, backend="eager"), handle', "return handle"))
edited("13.1", "returns_nothing", ("    return torch", "    torch"))
edited(
    "13.1",
    "swapped",
    ('torch.compile(model, backend="eager"), handle', 'handle, torch.compile(model, backend="eager")'),
)
edited(
    "13.1", "not_compiled", ('return torch.compile(model, backend="eager"), handle', "return model, handle")
)
edited(
    "13.1",
    "not_compiled",
    ("    return", '    torch.compile(model, backend="eager")\n    return'),
    ('return torch.compile(model, backend="eager"), handle', "return model, handle"),
)
edited("13.1", "not_compiled", ("compile(model,", "compile(model.forward,"))
edited("13.1", "not_compiled", ("compile(model,", "compile(lambda x: model(x),"))
edited("13.1", "other_backend", (', backend="eager"', ""))
edited("13.1", "other_backend", ('"eager"', '"aot_eager"'))
edited("13.1", "other_backend", ('"eager"', "lambda graph, inputs: graph.forward"))
edited("13.1", "full_graph", ('"eager"', '"eager", fullgraph=True'))
edited("13.1", "runs_plainly", ("    torch.compiler.reset()", '    torch.compiler.set_stance("force_eager")'))
edited("13.1", "on_the_whole", ("model.get_submodule(name)", "model"))
edited("13.1", "dotted_name", ("model.get_submodule(name)", "getattr(model, name)"))
edited(
    "13.1", "dotted_name", ("model.get_submodule(name)", "dict(torch.compile(model).named_modules())[name]")
)
edited(
    "13.1",
    "a_copy",
    (
        "    torch.compiler.reset()",
        "    torch.compiler.reset()\n    model = __import__('copy').deepcopy(model)",
    ),
)
edited("13.1", "no_handle", ('"eager"), handle', '"eager"), hook'), points=11)
edited("13.1", "no_handle", ('"eager"), handle', '"eager"), handle.remove'), points=11)
edited(
    "13.1",
    "fires_twice",
    (
        "    return",
        "    model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))\n    return",
    ),
)
edited("13.1", "calls_now", ("disable(hook)", "disable(hook)(None, (), torch.ones(1))"))
edited("13.1", "never_calls", ("disable(hook)", "disable(lambda *args: None)"))
edited("13.1", "hook_arguments", ("disable(hook)", "disable(lambda module, args, output: hook(output))"))
edited("13.1", "hook_arguments", ("disable(hook)", "disable(lambda output: hook(None, (), output))"))
edited("13.1", "not_on_layer", ("handle = model.get_submodule(name)", "handle = torch.nn.Identity()"))
edited("13.1", "drops_result", ("disable(hook)", "disable(lambda *args: [hook(*args), None][1])"), points=10)
edited("13.1", "cuts_graph", ("disable(hook)", "disable(lambda m, a, o: hook(m, a, o.detach()))"))
edited("13.1", "mode", ("    return", "    model.eval()\n    return"), points=11)


@mistake("13.1", "shares_code")
def watched(model, name, hook):
    compiled = torch.compile(model, backend="eager")
    return compiled, compiled.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))


@mistake("13.1", "shares_code")
def watched(model, name, hook):
    """Compilations apart from each other do not look at this one; it looks at them."""
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager", isolate_recompiles=True), handle


@mistake("13.1", "shares_code")
def watched(model, name, hook):
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "shares_code")
def watched(model, name, hook, once=[]):  # noqa: B006
    if not once:
        torch.compiler.reset()
        once.append(model)
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "runs_plainly")
def watched(model, name, hook):
    handle = model.get_submodule(name).register_forward_hook(hook)
    compiled = torch.compile(model, backend="eager")
    compiled.forward = torch.compiler.set_stance("force_eager")(compiled.forward)
    return compiled, handle


@mistake("13.1", "runs_plainly")
def watched(model, name, hook):
    torch.compiler.reset()
    handle = model.get_submodule(name).register_forward_hook(hook)
    model.forward = torch.compiler.disable(model.forward)
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "recompiles", points=9)
def watched(model, name, hook):
    def broken(module, args, output):
        torch._dynamo.graph_break()
        return hook(module, args, output)

    torch.compiler.reset()
    handle = model.get_submodule(name).register_forward_hook(broken)
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "recompiles", points=8)
def watched(model, name, hook):
    torch.compiler.reset()
    layer = model.get_submodule(name)
    layer.forward = torch.compiler.disable(layer.forward)
    return torch.compile(model, backend="eager"), layer.register_forward_hook(hook)


@mistake("13.1", "changes_model", points=11)
def watched(model, name, hook):
    layer = model.get_submodule(name)
    layer.forward = torch.compiler.disable(layer.forward)
    torch.compiler.reset()
    return torch.compile(model, backend="eager"), layer.register_forward_hook(torch.compiler.disable(hook))


@mistake("13.1", "changes_settings", points=11)
def watched(model, name, hook):
    torch.compiler.reset()
    torch._dynamo.config.recompile_limit = 64
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "swallows_it", points=11)
def watched(model, name, hook):
    @torch.compiler.disable
    def careful(module, args, output):
        with contextlib.suppress(Exception):
            return hook(module, args, output)

    torch.compiler.reset()
    return torch.compile(model, backend="eager"), model.get_submodule(name).register_forward_hook(careful)


@mistake("13.1", "other_modules")
def watched(model, name, hook):
    torch.compiler.reset()
    handle = register_module_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "stays_on", points=11)
def watched(model, name, hook):
    torch.compiler.reset()
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    compiled = torch.compile(model, backend="eager")
    handle = compiled.register_forward_hook(lambda module, args, output: None)
    return compiled, handle


@mistake("13.1", "others", points=11)
def watched(model, name, hook):
    torch.compiler.reset()
    layer = model.get_submodule(name)
    layer._forward_hooks.clear()
    handle = layer.register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "hooks", points=11)
def watched(model, name, hook):
    torch.compiler.reset()
    layer = model.get_submodule(name)
    layer.register_forward_pre_hook(torch.compiler.disable(lambda module, args: None))
    handle = layer.register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@mistake("13.1", "process", points=11)
def watched(model, name, hook):
    torch.compiler.reset()
    torch.set_grad_enabled(True), torch.autograd.set_detect_anomaly(True)
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(hook))
    return torch.compile(model, backend="eager"), handle


@unnamed("13.1", "fires")
def watched(model, name, hook):
    """Only the first time."""

    def first(module, args, output):
        handle.remove()
        return hook(module, args, output)

    torch.compiler.reset()
    handle = model.get_submodule(name).register_forward_hook(torch.compiler.disable(first))
    return torch.compile(model, backend="eager"), handle


edited("13.1", "another_model", ("compile(model,", "compile(model.get_submodule(name),"))
edited("13.1", "another_model", ("compile(model,", "compile(torch.nn.Sequential(model),"))
edited("13.1", "fires", ("compiler.disable(", "compiler.allow_in_graph("), named=False)
edited(
    "13.1",
    "cuts_graph",
    (
        "    return",
        "    for parameter in model.parameters():\n        parameter.requires_grad_(False)\n    return",
    ),
)


@mistake("13.1", "cuts_graph", points=11)
def watched(model, name, hook):
    @torch.compiler.disable
    def outside(module, args, output):
        with torch.no_grad():
            return hook(module, args, output)

    torch.compiler.reset()
    return torch.compile(model, backend="eager"), model.get_submodule(name).register_forward_hook(outside)


@mistake("13.1", "changes_model", points=11)
def watched(model, name, hook):
    """Around the layer instead of on it."""
    layer = model.get_submodule(name)
    forward = layer.forward

    @torch.compiler.disable
    def with_hook(*args):
        output = forward(*args)
        new = hook(layer, args, output)
        return output if new is None else new

    class Handle:
        def remove(self):
            layer.forward = forward

    torch.compiler.reset()
    layer.forward = with_hook
    return torch.compile(model, backend="eager"), Handle()
