"""What the tenth strangers tried on lesson 14: wrong answers that had passed, or whose messages had not been true."""

from contextlib import ExitStack

import torch

from hookedu import record
from tests.answers import mistake, unnamed


# A layer that did not run is there with its output of an earlier call.
@mistake("14.1", "of_another_run")
def outputs_of(model, names, *args, known={}, **kwargs):  # noqa: B006
    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, tuple | list):
            return type(value)(map(copied, value))
        return {key: copied(item) for key, item in value.items()} if isinstance(value, dict) else value

    with ExitStack() as stack:
        for name in names:
            layer = model.get_submodule(name)
            stack.enter_context(
                layer.register_forward_hook(lambda m, a, out, name=name: known.update({name: copied(out)}))
            )
        model(*args, **kwargs)
    return {name: known[name] for name in names if name in known}


# Whatever one can go through is made anew.
@mistake("14.1", "copies_others")
def outputs_of(model, names, *args, **kwargs):
    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        return type(value)(map(copied, value)) if hasattr(value, "__iter__") and value != "word" else value

    seen = {}
    with ExitStack() as stack:
        for name in names:
            layer = model.get_submodule(name)
            stack.enter_context(
                layer.register_forward_hook(lambda m, a, out, name=name: seen.update({name: copied(out)}))
            )
        model(*args, **kwargs)
    return seen


# What is in a tuple inside of a list is the model's own.
@mistake("14.1", "same_containers")
def outputs_of(model, names, *args, **kwargs):
    def one(value):
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    def copied(value):
        if isinstance(value, tuple | list):
            return type(value)(map(one, value))
        return {key: copied(item) for key, item in value.items()} if isinstance(value, dict) else one(value)

    seen = {}
    with ExitStack() as stack:
        for name in names:
            layer = model.get_submodule(name)
            stack.enter_context(
                layer.register_forward_hook(lambda m, a, out, name=name: seen.update({name: copied(out)}))
            )
        model(*args, **kwargs)
    return seen


# The last position of the prompts in the lesson.
@unnamed("14.2", "lens")
def logit_lens(model, ids):
    with record(model, ["blocks.*"], inputs=True) as recording:
        model(ids)
    stream = [recording["blocks.0"].calls[0].input[0], *recording.activations.values()]
    place = min(16, ids.shape[1] - 1)
    return torch.stack([model.unembed(model.norm(x[:, place])) for x in stream])


# The exception is swallowed, and parts of the model run afterwards.
@mistake("14.2", "swallows", points=4)
def logit_lens(model, ids):
    stream = []
    with ExitStack() as stack:
        first = model.blocks[0]
        stack.enter_context(first.register_forward_pre_hook(lambda module, args: stream.append(args[0])))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, a, output: stream.append(output)))
        try:
            model(ids)
        except RuntimeError as error:
            print(error)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


# Not more blocks than the model of the lesson has.
@mistake("14.4", "row_missing")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    with record(model, ["blocks.*"]) as recording:
        good = difference(model(clean))
    bad, blocks = difference(model(corrupted)), list(model.blocks)[:4]
    shares = torch.zeros(len(blocks), clean.shape[1])
    for number, block in enumerate(blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):

            def put(module, args, output, kept=kept, place=place):
                output = output.clone()
                output[:, place] = kept[:, place]
                return output

            with block.register_forward_hook(put):
                shares[number, place] = (difference(model(corrupted)) - bad) / (good - bad)
    return shares
