"""Wrong answers to lesson 14 that passed the checks, from strangers of the sixteenth round."""

from contextlib import ExitStack
from functools import partial  # noqa: F401  the reference answers use these

import torch

from tests.answers import mistake


# All keys are there from the start, and what is still None at the end is dropped: also what a layer put out.
@mistake("14.1", "drops_none")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, dict):
            return {k: copied(v) for k, v in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(copied(v) for v in value)
        return value

    kept = dict.fromkeys(names)
    with ExitStack() as stack:
        for name in kept:

            def keep(module, args, output, name=name):
                kept[name] = copied(output)

            stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
        model(*args, **kwargs)
    return {name: value for name, value in kept.items() if value is not None}


# A tensor that was copied is not copied again: but an in-place layer has changed it since.
@mistake("14.1", "copied_before")
def outputs_of(model, names, *args, **kwargs):
    memo, kept = {}, {}

    def copied(value):
        if isinstance(value, torch.Tensor):
            if id(value) not in memo:
                memo[id(value)] = (value, value.detach().clone())
            return memo[id(value)][1]
        if isinstance(value, dict):
            return {k: copied(v) for k, v in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(copied(v) for v in value)
        return value

    with ExitStack() as stack:
        for name in names:

            def keep(module, args, output, name=name):
                kept[name] = copied(output)

            stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
        model(*args, **kwargs)
    return kept
