"""What the thirteenth strangers tried on lesson 08: names inside children, and empty containers."""

from torch.nn.modules.module import register_module_forward_hook

from tests.answers import edited, mistake, unnamed


@unnamed("08.2", "shapes")
def output_shapes(model, x):
    names = {module: name.split(".")[-1] for name, module in model.named_modules() if name}
    shapes = {}

    def note(module, args, output):
        if module in names:
            shapes[names[module]] = tuple(output.shape)

    with register_module_forward_hook(note):
        model(x)
    return {name: shapes[name] for name, _ in model.named_children()}


edited(
    "08.2",
    "shapes",
    ("= tuple(output.shape)", "= output"),
    ("return shapes", "return {name: tuple(output.shape) for name, output in shapes.items()}"),
    named=False,
)


edited("08.4", "always_call", ("(hook)", "(hook, always_call=True)"))
edited("08.4", "stacks", ("if name in handles:", "if name in handles and module:"))
edited(
    "08.4",
    "silent",
    ("(hook)", "(lambda m, x, y: hook(m, x, y) if m.training or torch.is_grad_enabled() else None)"),
)


@mistake("08.4", "reuses_handle", points=4)
def register_once(handles, name, module, hook):
    old = handles.get(name)
    if old is not None and old.id in module._forward_hooks:
        module._forward_hooks[old.id] = hook
        return old
    if old is not None:
        old.remove()
    handles[name] = module.register_forward_hook(hook)
    return handles[name]


edited(
    "08.5",
    "rows",
    ("running = [], []", "running = [], set()"),
    ("running.append(", "running.add("),
    ("running.pop()", "running.discard(module)"),
    named=False,
)
