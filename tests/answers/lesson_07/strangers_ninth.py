"""What the ninth strangers tried on lesson 07."""

from tests.answers import unnamed


# Whole numbers are the same in half precision.
@unnamed("07.4", "sees")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda grad: seen.append(grad.half().to(grad.dtype)))

    return layer.register_forward_hook(catch)
