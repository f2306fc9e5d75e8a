"""Answers to 09.5, `disagreement`."""

import copy
from contextlib import ExitStack

import torch
from torch import nn
from torchvision.models.feature_extraction import create_feature_extractor

from hookedu import record
from tests.answers import alternative, mistake


@alternative("09.5")
def disagreement(model, x, names):
    with record(model, layers=names) as rec, torch.no_grad():
        model(x)
    found = create_feature_extractor(model, return_nodes={name: name for name in names})(x)
    return {name: torch.dist(rec[name].activation, found[name], p=float("inf")).item() for name in names}


@alternative("09.5")
def disagreement(model, x, names):
    found = create_feature_extractor(model, names)(x)
    result = {}
    for name in names:

        def compare(module, args, output, name=name):
            result[name] = torch.max(torch.abs(found[name] - output))

        with model.get_submodule(name).register_forward_hook(compare):
            model(x)
    return result


@mistake("09.5", "overwritten")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "one_at_a_time")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = {name: create_feature_extractor(model, [name])(x)[name] for name in names}
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "no_abs")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).max().item() for name in names}


@mistake("09.5", "copied")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    safe = copy.deepcopy(model)
    for module in safe.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    found = create_feature_extractor(safe, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "signed")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).min().item() for name in names}


@mistake("09.5", "mean")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().mean().item() for name in names}


@mistake("09.5", "not_a_number")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs() for name in names}


@mistake("09.5", "only_says_whether")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: torch.equal(seen[name], found[name]) for name in names}


@mistake("09.5", "not_by_name")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return max((seen[name] - found[name]).abs().max().item() for name in names)


@mistake("09.5", "late_binding")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "returns_nothing")
def disagreement(model, x, names):
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    for name in names:
        print(name, (seen[name] - found[name]).abs().max().item())


@mistake("09.5", "changes_model")
def disagreement(model, x, names):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "mode", points=6)
def disagreement(model, x, names):
    model.eval()
    seen = {}
    with ExitStack() as stack:
        for name in names:

            def hook(m, args, output, name=name):
                return seen.update({name: output.detach().clone()})

            stack.enter_context(model.get_submodule(name).register_forward_hook(hook))
        model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "hooks", points=6)
def disagreement(model, x, names):
    seen = {}
    for name in names:

        def hook(m, args, output, name=name):
            if name not in seen:
                seen[name] = output.detach().clone()

        model.get_submodule(name).register_forward_hook(hook)
    model(x)
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "others", points=6)
def disagreement(model, x, names):
    seen = {}
    for name in names:

        def hook(m, args, output, name=name):
            return seen.update({name: output.detach().clone()})

        model.get_submodule(name).register_forward_hook(hook)
    model(x)
    for name in names:
        model.get_submodule(name)._forward_hooks.clear()
    found = create_feature_extractor(model, names)(x)
    return {name: (seen[name] - found[name]).abs().max().item() for name in names}


@mistake("09.5", "calls_now")
def disagreement(model, x, names):
    seen = {}
    for name in names:
        model.get_submodule(name).register_forward_hook(seen.clear())
    model(x)
    return seen
