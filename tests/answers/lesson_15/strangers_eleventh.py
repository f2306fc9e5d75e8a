"""Answers to lesson 15 of strangers who had not read the checks, in their eleventh round: what is looked at too late, small norms."""

from contextlib import ExitStack

import torch

from tests.answers import edited, mistake

# None for any small norm.
edited("15.2", "none_too_often", ("if size else None", "if size > 1e-3 else None"))


@mistake("15.3", "too_late")
def nan_source(model, x):
    seen = []
    with ExitStack() as stack, torch.no_grad():
        for name, module in model.named_modules():
            if not list(module.children()):
                stack.enter_context(
                    module.register_forward_hook(lambda m, a, out, name=name: seen.append((name, out)))
                )
        model(x)
    for name, output in seen:
        bad = ~output.isfinite().flatten(1).all(1)
        if bad.any():
            return name, bad.nonzero()[0].item()
    return None
