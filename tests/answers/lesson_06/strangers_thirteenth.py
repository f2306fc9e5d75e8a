"""What the thirteenth strangers tried on lesson 06: layers of one class, weights that are saved after a run, and new biases."""

from torch.nn.modules.module import register_module_forward_pre_hook

from tests.answers import edited, mistake, unnamed


@mistake("06.1", "no_name", points=6)
def refuse_nan(layer, name, names={}):
    names[type(layer)] = name

    def guard(module, args):
        for value in args:
            if count := value.isnan().sum().item():
                raise ValueError(f"{names[type(module)]}: {count}")

    return layer.register_forward_pre_hook(guard)


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    def change(module, args):
        if type(module) is type(layer):
            return ((args[0] - mean) / std, *args[1:])

    return register_module_forward_pre_hook(change)


edited(
    "06.4",
    "saves_weight",
    ("del conv.weight", "del conv.weight\n    conv.register_buffer('weight', None)"),
    points=5,
)
edited(
    "06.4",
    "another_bias",
    (
        "del conv.weight",
        "del conv.weight\n    conv.bias = conv.bias if conv.bias is None else nn.Parameter(conv.bias.detach())",
    ),
    points=5,
)
