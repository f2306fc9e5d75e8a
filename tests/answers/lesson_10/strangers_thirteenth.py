"""What the thirteenth strangers tried on lesson 10: names inside children, outputs by columns, and a norm of 0."""

from torch.nn.modules.module import register_module_forward_hook

from tests.answers import edited, unnamed


@unnamed("10.1", "means")
def child_means(model, x):
    names = {module: name.split(".")[-1] for name, module in model.named_modules() if name}
    children = dict(model.named_children())
    means = {}

    def note(module, args, output):
        if names.get(module) in children:
            means[names[module]] = output.mean().item()

    with register_module_forward_hook(note):
        model(x)
    return means


edited(
    "10.5",
    "nothing",
    (
        "    def clip",
        "    if not max_norm:\n        return optimizer.register_step_pre_hook(lambda *_: None)\n\n    def clip",
    ),
    named=False,
)
