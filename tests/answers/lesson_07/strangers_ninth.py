"""What the ninth and the twenty-first strangers tried on lesson 07."""

from tests.answers import mistake, unnamed


# Whole numbers are the same in half precision.
@unnamed("07.4", "sees")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.append(grad.half().to(grad.dtype)))

    return layer.register_forward_hook(catch)


@mistake("07.5", "runs_again")
def stop_gradient(layer):
    def again(module, args, output):
        return module.forward(*(arg.detach() for arg in args))

    return layer.register_forward_hook(again)
