"""Answers to 06.2, `normalise`."""

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(module, args):
        x, *rest = args
        return (x - mean) / std, *rest

    return layer.register_forward_pre_hook(scale)


@alternative("06.2")
def normalise(layer, mean, std):
    return layer.register_forward_pre_hook(lambda module, args: ((args[0] - mean) / std,) + args[1:])


@alternative("06.2")
def normalise(layer, mean, std):
    def scale(module, args, kwargs):
        args = list(args)
        args[0] = args[0].sub(mean).div(std)
        return tuple(args), kwargs

    return layer.register_forward_pre_hook(scale, with_kwargs=True)


@mistake("06.2", "not_registered")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    return scale


@mistake("06.2", "forgets_return")
def normalise(layer, mean, std):
    def scale(module, args):
        x = (args[0] - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "forgets_return")
def normalise(layer, mean, std):
    def scale(module, args):
        args = ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "too_late")
def normalise(layer, mean, std):
    def scale(module, args, output):
        return (output - mean) / std

    return layer.register_forward_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] / std - mean, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] - mean / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "wrong_formula")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) * std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "own_statistics")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        return ((x - x.mean(0)) / x.std(0), *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "own_statistics")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        return ((x - x.mean()) / x.std(), *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "in_place")
def normalise(layer, mean, std):
    def scale(module, args):
        args[0].sub_(mean).div_(std)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "in_place")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        x -= mean
        x /= std
        return (x, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "changes_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return tuple((value - mean) / std for value in args)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "cuts_gradient", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0].detach() - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "cuts_gradient", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        with torch.no_grad():
            return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args[0] - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std,)

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args):
        return [(args[0] - mean) / std, *args[1:]]

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "tuple_for_tensor")
def normalise(layer, mean, std):
    def scale(module, args):
        return (args - mean) / std

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "calls_layer")
def normalise(layer, mean, std):
    def scale(module, args):
        return layer((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "calls_now")
def normalise(layer, mean, std):
    def scale(module, args):
        pass

    return layer.register_forward_pre_hook(scale(layer, ()))


@mistake("06.2", "one_argument")
def normalise(layer, mean, std):
    def scale(args):
        return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "no_handle", points=3)
def normalise(layer, mean, std):
    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    layer.register_forward_pre_hook(scale)


edited("06.2", "missing_star", ("*args[1:]", "args[1:]"))
edited("06.2", "copies", ("*args[1:]", "*(value.detach() for value in args[1:])"))
edited("06.2", "wrong_formula", ("args[0] - mean", "args[0] + mean"))
edited("06.2", "forgets_return", ("return ((args[0] - mean) / std, *args[1:])", "return args"))
edited("06.2", "cuts_gradient", ("(args[0] - mean)", "(args[0].data - mean)"), points=3)


@mistake("06.2", "removes_itself")
def normalise(layer, mean, std):
    def scale(module, args):
        handle.remove()
        return ((args[0] - mean) / std, *args[1:])

    handle = layer.register_forward_pre_hook(scale)
    return handle


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    def scale(module, args):
        mean.add_(1)
        return ((args[0] - mean + 1) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "drops_the_rest")
def normalise(layer, mean, std):
    def scale(module, args, kwargs):
        return ((args[0] - mean) / std,), {}

    return layer.register_forward_pre_hook(scale, with_kwargs=True)


@mistake("06.2", "others", points=3)
def normalise(layer, mean, std):
    layer._forward_pre_hooks.clear()

    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "hooks", points=3)
def normalise(layer, mean, std):
    layer.register_forward_hook(lambda module, args, output: None)

    def scale(module, args):
        return ((args[0] - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)


@mistake("06.2", "attributes", points=3)
def normalise(layer, mean, std):
    layer.mean, layer.std = mean, std

    def scale(module, args):
        return ((args[0] - module.mean) / module.std, *args[1:])

    return layer.register_forward_pre_hook(scale)


NEW = "return ((args[0] - mean) / std, *args[1:])"
edited("06.2", "receives", (NEW, "if module.training:\n            " + NEW), named=False)
edited("06.2", "receives", (NEW, "if torch.is_grad_enabled():\n            " + NEW), named=False)
edited("06.2", "receives", (NEW, "if args[0].any():\n            " + NEW), named=False)
edited("06.2", "receives", ("(args[0] - mean) / std", "((args[0] - mean) / std).clamp(-10, 10)"), named=False)
edited("06.2", "receives", ("(args[0] - mean) / std", "((args[0] - mean) / std).float()"), named=False)
edited("06.2", "receives", ("/ std, *", "/ (std + 1e-5), *"), named=False)
edited("06.2", "drops_the_rest", ("*args[1:]", "*[a for a in args[1:] if a is not None]"))
edited("06.2", "drops_the_rest", ("*args[1:]", "*[a for a in args[1:] if torch.is_tensor(a)]"))
edited("06.2", "drops_the_rest", ("*args[1:]", "*args[1:4]"))
edited(
    "06.2",
    "drops_keywords",
    ("(module, args)", "(module, args, kwargs)"),
    (NEW, NEW + ", {}"),
    ("hook(scale)", "hook(scale, with_kwargs=True)"),
)


@unnamed("06.2", "receives")
def normalise(layer, mean, std):
    made = {}

    def scale(module, args):
        if id(args[0]) not in made:
            made[id(args[0])] = (args[0] - mean) / std
        return (made[id(args[0])], *args[1:])

    return layer.register_forward_pre_hook(scale)


edited("06.2", "receives", (NEW, "if args[0].abs().max() > 1:\n            " + NEW), named=False)
edited("06.2", "only_evaluation", (NEW, "if not module.training:\n            " + NEW))
edited("06.2", "fires_backward", ("register_forward_pre_hook", "register_full_backward_pre_hook"))
edited(
    "06.2",
    "changes_the_rest",
    ("*args[1:]", "*(a if a is None else torch.as_tensor(a) for a in args[1:])"),
    points=3,
)
edited("06.2", "receives", ("(args[0] - mean)", "(args[0].float() - mean)"), named=False)
edited("06.2", "receives", ("args[0] - mean", "args[0] - mean.float()"), named=False)
edited(
    "06.2",
    "drops_keywords",
    ("(module, args)", "(module, args, kwargs)"),
    (NEW, NEW + ", {k: v for k, v in kwargs.items() if v is not None}"),
    ("hook(scale)", "hook(scale, with_kwargs=True)"),
)


@mistake("06.2", "skips_normalised")
def normalise(layer, mean, std):
    def scale(module, args):
        x = args[0]
        if x.mean().abs() < 0.1 and (x.std() - 1).abs() < 0.1:
            return None  # "already normalised"
        return ((x - mean) / std, *args[1:])

    return layer.register_forward_pre_hook(scale)
