"""Answers to lesson 15 that were told a cause that was not theirs, found in the seventh reading."""

from contextlib import contextmanager
from functools import partial

from tests.answers import edited, mistake

# The largest of an output and of the ReLU behind it are one number, but nobody looked too late.
edited("15.1", "first", ("output.norm().item()", "output.max().item()"), named=False)
# A step is there twice, but none of another optimizer.
edited("15.2", "steps", ("steps.append(ratios)", "steps.extend([ratios, dict(ratios)])"), named=False)


@mistake("15.1", "late_binding")  # a single module has a hook
@contextmanager
def instruments(model):
    rows = []

    def keep(name, module, args, output):
        rows[-1][name] = [output.norm().item(), None]

    for name, module in model.named_modules():
        last = name, module
    with (
        model.register_forward_pre_hook(lambda model, args: rows.append({})),
        last[1].register_forward_hook(partial(keep, last[0])),
    ):
        yield rows


# Copies, but after the step.
edited(
    "15.2",
    "no_copy",
    (
        "    with optimizer.register_step_pre_hook(begin), ",
        "    with optimizer.register_step_post_hook(begin), ",
    ),
)
# Nothing is added.
edited("15.2", "adds_to_divisor", ("moved / size if", "moved / max(size, 1e-12) if"))


# It is no hook that is called with other arguments.
@mistake("15.2", "no_manager_error")
class SevenRatios:
    def __init__(self, model, optimizer):
        self.steps = []

    def __enter__(self):
        return self.steps

    def __exit__(self):
        pass


# No list is empty: `nonzero()` found nothing.
edited(
    "15.3",
    "nothing_to_take",
    ("        if bad.any():\n            found.append", "        found.append"),
)
edited("15.3", "returns_tuple", ("output.isfinite()", "args.isfinite()"))
