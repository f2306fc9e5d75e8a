"""Wrong answers to lesson 11 that passed the checks, from strangers of the fifteenth round."""

from torch import nn
from torch.nn import functional as F

from tests.answers import mistake


# ReLUs have their `inplace` switched off meanwhile, and maps are not copied: not all that works in place is such a ReLU.
@mistake("11.2", "overwritten")
def grad_cam(model, layer, images, labels):
    seen = {}
    switched = [module for module in model.modules() if isinstance(module, nn.ReLU) and module.inplace]

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    for module in switched:
        module.inplace = False
    try:
        with layer.register_forward_hook(keep):
            model(images).gather(1, labels[:, None]).sum().backward()
    finally:
        for module in switched:
            module.inplace = True
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[2:], mode="bilinear")[:, 0]
