"""What the twelfth strangers tried on lesson 07: inputs of whole numbers, and inputs that are leaves beside a shortcut."""

from tests.answers import unnamed


@unnamed("07.5", "first", points=5)
def stop_gradient(layer):
    def cut(module, args):
        return tuple(x.detach().requires_grad_() for x in args)

    return layer.register_forward_pre_hook(cut)


@unnamed("07.5", "skip", points=5)
def stop_gradient(layer):
    def cut(module, args):
        for x in args:
            if x.is_leaf:
                x.requires_grad_(False)
        return tuple(x.detach() for x in args)

    return layer.register_forward_pre_hook(cut)
