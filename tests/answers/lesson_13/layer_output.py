"""Answers to 13.2, `layer_output`."""

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("13.2")
def layer_output(compiled, name, x):
    seen = []
    layer = dict(compiled.named_modules())["_orig_mod." + name]
    handle = layer.register_forward_hook(lambda module, args, output: seen.append(output.clone()))
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            compiled(x)
    finally:
        handle.remove()
    return seen[0]


@alternative("13.2")
def layer_output(compiled, name, x):
    seen, model = {}, compiled._orig_mod
    with model.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.update(out=out.detach().clone())
    ):
        model(x)
    return seen["out"]


@alternative("13.2")
def layer_output(compiled, name, x):
    seen = []

    @torch.compiler.set_stance("force_eager")
    def run():
        compiled(x)

    with compiled.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.append(out.detach().clone())
    ):
        run()
    return seen.pop()


@mistake("13.2", "never_fired")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.update(out=out.detach().clone())
    ):
        compiled(x)
    return seen.get("out")


@mistake("13.2", "never_fired")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.update(out=out.detach().clone())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)


@mistake("13.2", "nothing_kept")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.update(out=out.detach().clone())
    ):
        compiled(x)
    return seen["out"]


@mistake("13.2", "nothing_kept")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        compiled(x)
    return seen[-1]


@mistake("13.2", "prefix")
def layer_output(compiled, name, x):
    seen = []
    layer = dict(compiled.named_modules())[name]
    with layer.register_forward_hook(lambda m, a, out: seen.append(out.detach().clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "stance_stays", points=7)
def layer_output(compiled, name, x):
    seen = []
    torch.compiler.set_stance("force_eager")
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        compiled(x)
    return seen[0]


@mistake("13.2", "compiles_anew", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        torch.compiler.reset()
        compiled(x)
    return seen[0]


@mistake("13.2", "leaves_hook", points=7)
def layer_output(compiled, name, x):
    seen = []
    compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach().clone()))
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen[0]


@mistake("13.2", "attached", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "models_output")
def layer_output(compiled, name, x):
    return compiled(x).detach()


@mistake("13.2", "its_input")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.append(args[0].detach().clone())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "a_list")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.append(out.detach().clone())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen


@mistake("13.2", "calls_now")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(seen.append("output")):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "wrong_arguments")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda out: seen.append(out.detach().clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "prefix")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.update({name: out.clone()})
    ):
        compiled(x)
    return seen[name]


@mistake("13.2", "compiles_anew", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        torch.compile(compiled._orig_mod, backend="eager")(x)
    return seen[0]


@mistake("13.2", "layer_alone")
def layer_output(compiled, name, x):
    return compiled.get_submodule(name)(x).detach()


@mistake("13.2", "other_mode")
def layer_output(compiled, name, x):
    seen = []
    compiled.eval()
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.append(out.detach().clone())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("13.2", "compiles_anew", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    torch.compiler.reset()
    return seen[0]


edited("13.2", "overwritten", (".clone()", ""))
edited("13.2", "grad", ("compiled(x)\n", "compiled(x).sum().backward()\n"), points=7)
edited(
    "13.2",
    "other_mode",
    ("    layer =", "    compiled.eval()\n    layer ="),
    ("    return", "    compiled.train()\n    return"),
)
edited("13.2", "switches_mode", ("    layer =", "    compiled.train()\n    layer ="), points=7)
edited("13.2", "requires_grad", ("    layer =", "    x.requires_grad_()\n    layer ="), points=7)


@unnamed("13.2", "output")
def layer_output(compiled, name, x, seen={}):  # noqa: B006
    def keep(module, args, output):
        seen.setdefault(name, output.detach().clone())

    with compiled.get_submodule(name).register_forward_hook(keep), torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen[name]


edited("13.2", "others", ("    return", "    layer._forward_hooks.clear()\n    return"), points=7)
edited("13.2", "output", ("= output.detach().clone()", "= output.detach()[:1].clone()"), named=False)
edited("13.2", "output", ("    layer =", "    x.clamp_(-1, 1)\n    layer ="), named=False)
edited(
    "13.2",
    "process",
    (
        ', torch.compiler.set_stance("force_eager"):\n        compiled(x)',
        ':\n        torch.compiler.set_stance("force_eager")\n        try:\n            compiled(x)\n'
        '        finally:\n            torch.compiler.set_stance("default")',
    ),
    points=7,
)
edited(
    "13.2",
    "requires_grad",
    ("    layer =", "    for p in compiled.parameters():\n        p.requires_grad_(True)\n    layer ="),
    points=7,
)
edited("13.2", "attached", ('return seen["output"]', 'return seen["output"].requires_grad_()'), points=7)


@mistake("13.2", "unrestored", points=7)
def layer_output(compiled, name, x):
    seen = []
    handle = compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    )
    stance = torch.compiler.set_stance("force_eager")
    stance.__enter__()
    compiled(x)
    stance.__exit__(None, None, None)
    handle.remove()
    return seen[0]


@mistake("13.2", "unrestored", points=7)
def layer_output(compiled, name, x):
    seen = []
    handle = compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    )
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    handle.remove()
    return seen[0]


@mistake("13.2", "unrestored", points=7)
def layer_output(compiled, name, x):
    seen = []
    stance = torch.compiler.set_stance("force_eager")
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, a, out: seen.append(out.detach().clone())
    ):
        stance.__enter__()
        compiled(x)
        stance.__exit__(None, None, None)
    return seen[0]
