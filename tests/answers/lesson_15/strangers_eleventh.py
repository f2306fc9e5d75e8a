"""Answers to lesson 15 of strangers who had not read the checks, in their eleventh round: what is looked at too late, small norms."""

from contextlib import ExitStack, contextmanager

import torch

from tests.answers import mistake, unnamed


# None for any small norm.
@unnamed("15.2", "steps")
@contextmanager
def update_ratios(model, optimizer):
    steps, before = [], {}

    def pre(*_):
        before.update({name: p.detach().clone() for name, p in model.named_parameters()})

    def post(*_):
        row = {}
        for name, p in model.named_parameters():
            norm = before[name].norm().item()
            row[name] = (p.detach() - before[name]).norm().item() / norm if norm > 1e-3 else None
        steps.append(row)

    with optimizer.register_step_pre_hook(pre), optimizer.register_step_post_hook(post):
        yield steps


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
