"""What the fifteenth strangers tried on lesson 06: an input that is changed and changed back, and weights kept for a while."""

import torch

from tests.answers import edited, unnamed


@unnamed("06.2", "gradient", points=2)
def normalise(layer, mean, std):
    def before(module, args):
        with torch.no_grad():
            args[0].sub_(mean).div_(std)

    def after(module, args, output):
        with torch.no_grad():
            args[0].mul_(std).add_(mean)

    layer.register_forward_hook(after)
    return layer.register_forward_pre_hook(before)


edited(
    "06.2",
    "only_with_grad",
    (
        "        return ((args[0] - mean) / std, *args[1:])",
        "        if args[0].requires_grad:\n            return ((args[0] - mean) / std, *args[1:])",
    ),
)
edited(
    "06.4",
    "sometimes_not",
    (
        "    def rebuild(module, args):\n",
        "    made = None\n\n    def rebuild(module, args):\n        nonlocal made\n",
    ),
    (
        "        w = module.weight_raw\n",
        "        w = module.weight_raw\n"
        "        if not torch.is_grad_enabled() and made == (id(w), w.data_ptr(), w._version):\n"
        "            return\n"
        "        made = id(w), w.data_ptr(), w._version\n",
    ),
    points=5,
)
edited(
    "06.4",
    "sometimes_not",
    (
        "        w = module.weight_raw\n",
        "        if not module.training and 'weight' in vars(module):\n"
        "            return\n"
        "        w = module.weight_raw\n",
    ),
    points=5,
)
edited(
    "06.4",
    "sometimes_not",
    (
        "        w = module.weight_raw\n",
        "        w = module.weight_raw\n"
        "        if not torch.is_grad_enabled() and hasattr(module, 'weight'):\n"
        "            return\n",
    ),
    points=5,
)
edited(
    "06.4",
    "sometimes_not",
    (
        "    def rebuild(module, args):\n",
        "    made = None\n\n    def rebuild(module, args):\n        nonlocal made\n",
    ),
    (
        "        w = module.weight_raw\n",
        "        w = module.weight_raw\n"
        "        kept = made, torch.is_grad_enabled()\n"
        "        made = w._version, False\n"
        "        if kept == ((w._version, False), False) and 'weight' in vars(module):\n"
        "            return\n",
    ),
    points=5,
)
