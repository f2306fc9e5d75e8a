"""Further wrong answers to the exercises of lesson 07 that readers wrote without knowing the checks."""

# Edited answers use some of these imports.
import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import edited, mistake, unnamed

edited("07.1", "two_d_only", ("*x.shape[:-1]", "*x.shape[:3][: x.dim() - 1]"), points=3)

edited("07.2", "routes", ("F.max_pool2d(features,", "F.max_pool2d(features.float(),"), named=False)


@unnamed("07.2", "ties", points=3)
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool)
    mask.flatten(2).scatter_(2, index.flatten(2), True)
    return mask


@unnamed("07.2", "routes")
def pool_mask(features, size):
    values, index = F.max_pool2d(features, size, return_indices=True)
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    return mask.scatter(2, index.flatten(2), values.isfinite().flatten(2)).view_as(features)


@mistake("07.3", "other_mode")
def guided_relu(model):
    was = model.training

    def keep_positive(module, grad_input, grad_output):
        if module.training == was:
            return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


edited(
    "07.3",
    "not_root",
    (
        "for module in model.modules()\n        if isinstance(module, nn.ReLU)",
        "for name, module in model.named_modules()\n        if name and isinstance(module, nn.ReLU)",
    ),
)
edited(
    "07.3",
    "hooks_once",
    ("def guided_relu(model):", "done = set()\n\n\ndef guided_relu(model):"),
    (
        "isinstance(module, nn.ReLU)",
        "isinstance(module, nn.ReLU) and not (module in done or done.add(module))",
    ),
)
edited("07.3", "itself", ("clamp(min=0)", "clamp(0, 1e4)"), named=False)


@mistake("07.4", "changes_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        def note(grad):
            seen.append(grad)
            return torch.nan_to_num(grad)

        if output.requires_grad:
            output.register_hook(note)

    return layer.register_forward_hook(catch)


edited(
    "07.4",
    "sees",
    ("output.register_hook(seen.append)", "output.register_hook(lambda grad: seen.append(grad.float()))"),
    named=False,
)
edited(
    "07.4",
    "makes_need",
    (
        "if output.requires_grad:",
        "if torch.is_grad_enabled():\n            output.requires_grad or output.requires_grad_()",
    ),
    points=4,
)
edited(
    "07.4",
    "latest_list",
    (
        "def watch_output(layer, seen):",
        "sink = {}\n\n\ndef watch_output(layer, seen):\n    sink[layer] = seen\n",
    ),
    ("output.register_hook(seen.append)", "output.register_hook(lambda grad: sink[layer].append(grad))"),
)


@mistake("07.5", "others", points=5)
def stop_gradient(layer):
    layer._forward_pre_hooks.clear()
    return layer.register_forward_pre_hook(lambda module, args: tuple(value.detach() for value in args))


@mistake("07.5", "one_input", points=5)
def stop_gradient(layer):
    def cut(module, args):
        return (*(value.detach() for value in args[:2]), *args[2:])

    return layer.register_forward_pre_hook(cut)
