"""Wrong answers to lesson 11 from readers who did not know the checks: the eighth round."""

from functools import partial

import torch.nn.functional as F

from tests.answers import edited, mistake

# Behind a ReLU that works in place, a tensor that was kept is the output of that ReLU.
_grad_cam = partial(edited, "11.2")

_grad_cam(
    "behind",
    ("        output.register_hook(lambda grad: seen.update(grads=grad))", '        seen["output"] = output'),
    (
        "logits.gather",
        'seen["output"].register_hook(lambda grad: seen.update(grads=grad))\n    logits.gather',
    ),
)
_grad_cam(
    "normalised",
    ("    return F", "    cam = cam / cam.amax(dim=(2, 3), keepdim=True).clamp(min=1e-8)\n    return F"),
)


@mistake("11.2", "behind")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.retain_grad()
        seen.update(output=output, maps=output.detach().clone())

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["output"].grad.mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear").squeeze(1)
