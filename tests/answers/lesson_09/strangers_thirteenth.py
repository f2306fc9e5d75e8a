"""What the thirteenth strangers tried on lesson 09: many pictures, the number 1, and differences that are small beside the numbers."""

import torch
from torchvision.models.feature_extraction import create_feature_extractor

from tests.answers import edited, unnamed

edited("09.3", "only_some", ('{"images": 0}', '{"images": 100}'))
edited("09.3", "pixels", ("(tag, picture,", "(tag, (256 * picture).to(torch.uint8),"), named=False)
edited(
    "09.5",
    "differences",
    ("(seen[name] - found[name])", "(seen[name].float() - found[name].float())"),
    named=False,
)


@unnamed("09.5", "differences")
def disagreement(model, x, names):
    kept = {}

    def keep(name):
        def hook(module, args, output):
            kept[name] = output.detach().clone()

        return hook

    handles = [model.get_submodule(name).register_forward_hook(keep(name)) for name in names]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    found = create_feature_extractor(model, names)(x)
    same = {name: torch.allclose(kept[name], found[name]) for name in names}
    return {n: 0.0 if same[n] else (kept[n] - found[n]).abs().max().item() for n in names}
