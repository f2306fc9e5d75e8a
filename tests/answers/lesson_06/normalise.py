"""Answers to 06.2, `normalise`."""

import torch

from tests.answers import alternative, mistake


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


@mistake("06.2", "changes_the_rest", points=3)
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
