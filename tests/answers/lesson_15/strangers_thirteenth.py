"""Wrong answers to lesson 15 that passed the checks, from strangers of the thirteenth round."""

from contextlib import contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from tests.answers import edited, mistake, unnamed

# A gradient of norm 0 is written as None.
edited("15.1", "none_for_zero", ("grad.norm().item()", "grad.norm().item() or None"))

# A row begins when a layer comes again: two calls that run different layers share one.
edited(
    "15.1",
    "other_rows",
    (
        "        entry = ",
        "        if not rows or name in rows[-1]:\n            rows.append({})\n        entry = ",
    ),
    ("lambda model, args: rows.append({})", "lambda model, args: None"),
)

# A row begins where no call is running: after one that raised, there always is.
edited(
    "15.1",
    "stays_raised",
    ("rows, handles = [], []", "rows, handles, running = [], [], []"),
    (
        "model.register_forward_pre_hook(lambda model, args: rows.append({}))",
        "model.register_forward_pre_hook(lambda *_: (running or rows.append({}), running.append(1))[2:] or None)",
    ),
    (
        "    try:\n",
        "    try:\n        handles.append(model.register_forward_hook(lambda *_: running.clear()))\n",
    ),
)


# Gradients go to the last row that waits for one.
@mistake("15.1", "latest_row")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def arrived(name, grad):
        row = next(row for row in reversed(rows) if name in row and row[name][1] is None)
        row[name][1] = grad.norm().item()

    def look(name, module, args, output):
        rows[-1][name] = [output.norm().item(), None]
        if output.requires_grad:
            output.register_hook(partial(arrived, name))

    try:
        handles.append(model.register_forward_pre_hook(lambda model, args: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


# The closure is called before the step, which does not get it.
@unnamed("15.2", "given")
@contextmanager
def update_ratios(model, optimizer):
    steps, original = [], optimizer.step

    def step(closure=None):
        loss = None if closure is None else closure()
        before = {name: param.detach().clone() for name, param in model.named_parameters()}
        original()
        ratios = {}
        for name, param in model.named_parameters():
            size, moved = before[name].norm().item(), (param.detach() - before[name]).norm().item()
            ratios[name] = moved / size if size else None
        steps.append(ratios)
        return loss

    optimizer.step = step
    try:
        yield steps
    finally:
        del optimizer.step


# The sample with the most bad numbers.
edited(
    "15.3",
    "last_sample",
    ("bad.nonzero()[0].item()", "(~output.isfinite()).flatten(1).sum(1).argmax().item()"),
)

# Large numbers of float64 become inf.
edited("15.3", "adds_up", ("output.isfinite()", "output.float().isfinite()"))

# Modules with children as well: a container may compute something itself.
edited("15.3", "only_containers", ("if not list(module.children())", "if True"))

# Weights are cleaned for good.
edited(
    "15.3",
    "values",
    ("    try:\n", "    for param in model.parameters():\n        param.data.nan_to_num_()\n    try:\n"),
    points=6,
)

# Without the dimension of samples, where there is one.
edited("15.3", "raised", (".all(dim=1)", ".all(dim=1).squeeze()"), named=False)

# A result that is finite decides, in evaluation mode.
edited(
    "15.3",
    "asks_the_end",
    ("        model(x)\n", "        out = model(x)\n"),
    ("if found else None", "if found and (model.training or not out.isfinite().all()) else None"),
)
