"""What the tenth strangers tried on lesson 15: wrong answers that had passed, or whose messages had not been true."""

from contextlib import contextmanager
from functools import partial

from tests.answers import edited, mistake, unnamed


# Other people's hooks on the optimizer go at the end.
@mistake("15.2", "others", points=5)
@contextmanager
def update_ratios(model, optimizer):
    steps, before = [], {}

    def keep(*_):
        before.update({name: param.detach().clone() for name, param in model.named_parameters()})

    def note(*_):
        row = {}
        for name, param in model.named_parameters():
            size = before[name].norm().item()
            row[name] = (param.detach() - before[name]).norm().item() / size if size else None
        steps.append(row)

    optimizer.register_step_pre_hook(keep)
    optimizer.register_step_post_hook(note)
    try:
        yield steps
    finally:
        optimizer._optimizer_step_pre_hooks.clear()
        optimizer._optimizer_step_post_hooks.clear()


# The place along the last dimension but one, which is no count of samples.
@unnamed("15.3", "finds")
def nan_source(model, x):
    found, handles = [], []

    def look(name, module, args, output):
        bad = (~output.isfinite()).any(-1)
        if bad.any():
            found.append((name, bad.nonzero()[0].tolist()[-1]))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


# The one frozen parameter is thawed.
edited("15.3", "requires_grad", ("    try:\n", "    model.requires_grad_(True)\n    try:\n"), points=6)
