"""Answers to 11.2, `grad_cam`."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative, mistake


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        score = model(images)[torch.arange(len(labels)), labels].sum()
    (grads,) = torch.autograd.grad(score, kept[0])
    cam = torch.einsum("nc,nchw->nhw", grads.mean(dim=(2, 3)), kept[0].detach())
    return nn.Upsample(images.shape[-2:], mode="bilinear", align_corners=False)(F.relu(cam)[:, None]).squeeze(
        1
    )


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    maps, grads = [], []
    handles = [
        layer.register_forward_hook(lambda module, args, output: maps.append(output.detach().clone())),
        layer.register_full_backward_hook(
            lambda module, grad_input, grad_output: grads.append(grad_output[0])
        ),
    ]
    model.zero_grad()
    model(images).gather(1, labels[:, None]).sum().backward()
    for handle in handles:
        handle.remove()
    weights = grads[0].mean(dim=(2, 3))
    cam = (weights[:, :, None, None] * maps[0]).sum(dim=1).clamp(min=0)
    return F.interpolate(cam.unsqueeze(1), tuple(images.shape[2:]), mode="bilinear").squeeze(1)


@mistake("11.2", "no_relu")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True)
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "relu_late")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True)
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0].relu()


@mistake("11.2", "absolute")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).abs()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "relu_on_weights")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True).relu()
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "not_upsampled")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return cam[:, 0]


@mistake("11.2", "nearest")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:])[:, 0]


@mistake("11.2", "align_corners")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear", align_corners=True)[:, 0]


@mistake("11.2", "height_and_width")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=(images.shape[3], images.shape[2]), mode="bilinear")[:, 0]


@mistake("11.2", "keeps_dim")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")


@mistake("11.2", "normalised")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = F.interpolate(
        (weights * seen["maps"]).sum(dim=1, keepdim=True).relu(), size=images.shape[-2:], mode="bilinear"
    )
    return (cam / cam.amax(dim=(2, 3), keepdim=True))[:, 0]


@mistake("11.2", "no_average")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"]
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "unweighted")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = seen["maps"].mean(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "averages_channels")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).mean(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "gradient_only")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = seen["grads"].sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "broadcast")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3))
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "needs_four_dimensions")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")


@mistake("11.2", "needs_scalar")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None])
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "wrong_layer")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = args[0].detach()
        args[0].register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "wrong_layer")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with model.conv2.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "wrong_class")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.max(dim=1).values.sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "one_class")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits[:, labels[0]].sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "one_picture")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits[0, labels[0]]
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "probabilities")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.softmax(dim=1).gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "uses_loss")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = F.cross_entropy(logits, labels)
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "all_classes")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "returns_nothing")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "no_graph")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        with torch.no_grad():
            logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "attached", points=5)
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "leaves_hook", points=5)
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    layer.register_forward_hook(keep)
    logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "squeezes")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear").squeeze()


@mistake("11.2", "fixed_size")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=(64, 64), mode="bilinear")[:, 0]


@mistake("11.2", "fixed_size")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, scale_factor=8, mode="bilinear")[:, 0]


@mistake("11.2", "sums_gradient")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].sum(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "mean_of_weights")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(0, 2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "mean_of_pictures")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).mean().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "crossed")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits[:, labels].sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "bicubic")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bicubic")[:, 0]


@mistake("11.2", "returns_list")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return list(F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0])


@mistake("11.2", "replaces_output")
def grad_cam(model, layer, images, labels):
    seen = {}
    with layer.register_forward_hook(
        lambda module, args, output: (
            seen.update(maps=output.detach()),
            output.register_hook(lambda grad: seen.update(grads=grad)),
        )
    ):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "no_backward")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    logits.gather(1, labels[:, None]).sum().backward()
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "needs_index")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@mistake("11.2", "square")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-1], mode="bilinear")[:, 0]


@mistake("11.2", "square")
def grad_cam(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[2], mode="bilinear")[:, 0]
