"""Further wrong answers to the exercises of lesson 09 that readers wrote without knowing the checks."""

from functools import partial

import torch
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import mistake, unnamed


@mistake("09.4", "state")
def dead_channels(model, relu, batches, alive=set()):
    size = 0

    def hook(module, args, output):
        nonlocal size
        size = output.shape[1]
        alive.update(output.amax((0, 2, 3)).nonzero().flatten().tolist())

    with relu.register_forward_hook(hook):
        for batch in batches:
            model(batch)
    return [channel for channel in range(size) if channel not in alive]


@mistake("09.5", "no_abs")
def smallest(model, x, names):
    kept, handles = {}, []

    def keep(name, module, args, output):
        kept[name] = output.detach().clone()

    for name in names:
        handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
    with torch.no_grad():
        model(x)
        for handle in handles:
            handle.remove()
        found = create_feature_extractor(model, names)(x)
    return {name: abs(kept[name].min() - found[name].min()).item() for name in names}


@unnamed("09.5", "differences")
def disagreement(model, x, names):
    kept, handles = {}, []

    def keep(name, module, args, output):
        kept[name] = output.detach().clone()

    for name in names:
        handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
    with torch.no_grad():
        model(x)
        for handle in handles:
            handle.remove()
        found = create_feature_extractor(model, names)(x)
    return {name: abs(kept[name].abs().max() - found[name].abs().max()).item() for name in names}
