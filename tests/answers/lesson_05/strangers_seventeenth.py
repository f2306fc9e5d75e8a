"""Answers to lesson 05 of strangers who had not read the checks, in their seventeenth round."""

from tests.answers import unnamed


# "Every output of `module`": a module need not have a weight, nor any parameter.
@unnamed("05.4", "without_parameters")
def steer(module, direction, strength):
    def hook(module, args, output):
        return output + strength * direction.to(module.weight.device, module.weight.dtype)

    return module.register_forward_hook(hook)


@unnamed("05.4", "raised")
def steer(module, direction, strength):
    p = next(module.parameters())
    shift = strength * direction.to(device=p.device, dtype=p.dtype)

    def hook(module, args, output):
        return output + shift

    return module.register_forward_hook(hook)


@unnamed("05.4", "without_parameters")
def steer(module, direction, strength):
    def hook(module, args, output):
        for param in module.parameters():
            return output + strength * direction.to(param.dtype)
        return output

    return module.register_forward_hook(hook)
