"""What the sixteenth strangers and readers tried on lesson 09: names in another order than that of running."""

import copy

import torch
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import mistake


@mistake("09.5", "as_defined")
def disagreement(model, x, names):
    model = copy.deepcopy(model)
    kept = []
    handles = [
        model.get_submodule(name).register_forward_hook(lambda m, a, out: kept.append(out.detach().clone()))
        for name in names
    ]
    state = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model(x)
        for handle in handles:
            handle.remove()
        model.load_state_dict(state)
        found = create_feature_extractor(model, names)(x)
    ordered = sorted(names, key=[name for name, _ in model.named_modules()].index)
    result = {n: (a - found[n]).abs().max().item() for n, a in zip(ordered, kept, strict=True)}
    return {name: result[name] for name in names}


@mistake("09.5", "copied")
def disagreement(model, x, names):
    """The same outputs twice, both by hooks: no extractor at all."""

    def outputs():
        kept = {}
        handles = [
            model.get_submodule(name).register_forward_hook(
                lambda m, a, out, name=name: kept.update({name: out.detach().clone()})
            )
            for name in names
        ]
        model(x)
        for handle in handles:
            handle.remove()
        return kept

    one, other = outputs(), outputs()
    return {name: (one[name] - other[name]).abs().max().item() for name in names}
