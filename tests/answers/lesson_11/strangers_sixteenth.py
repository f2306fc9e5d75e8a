"""What the sixteenth readers tried on lesson 11: tuples taken for tensors, and the .grad of an output."""

from tests.answers import mistake


@mistake("11.1", "replaces_output")
def channel_weights(model, layer, images, labels):
    seen = {}
    with layer.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.update(grads=grad_output.mean(dim=(2, 3)))
    ):
        model(images).gather(1, labels[:, None]).sum().backward()
    return seen["grads"]


@mistake("11.1", "no_backward")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["output"] = output

    with layer.register_forward_hook(keep):
        model(images).gather(1, labels[:, None]).sum().backward()
    return seen["output"].grad.mean(dim=(2, 3))
