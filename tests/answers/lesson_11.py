"""Right and wrong answers to the exercises of lesson 11."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative, mistake

# --- 11.1 ---------------------------------------------------------------------------------------------------


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    kept = []
    handle = layer.register_full_backward_hook(
        lambda module, grad_input, grad_output: kept.append(grad_output[0])
    )
    logits = model(images)
    logits[torch.arange(len(labels)), labels].sum().backward()
    handle.remove()
    return kept[0].mean(dim=[2, 3])


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        score = model(images).gather(1, labels.unsqueeze(1)).sum()
    (grads,) = torch.autograd.grad(score, kept)
    return grads.flatten(2).mean(-1)


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    weights = []
    for image, label in zip(images, labels):
        kept = []
        with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
            logits = model(image[None])
        kept[0].retain_grad()
        logits[0, label].backward()
        weights.append(kept[0].grad[0].mean((1, 2)))
    return torch.stack(weights)


@mistake("11.1", "sums")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].sum(dim=(2, 3))


@mistake("11.1", "keeps_dims")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3), keepdim=True)


@mistake("11.1", "no_average")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"]


@mistake("11.1", "wrong_axes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=1)


@mistake("11.1", "wrong_axes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(0, 2, 3))


@mistake("11.1", "wrong_axes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(1, 2, 3))


@mistake("11.1", "absolute")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3)).abs()


@mistake("11.1", "absolute")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3)).relu()


@mistake("11.1", "wrong_class")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.max(dim=1).values.sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "wrong_class")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, logits.argmax(dim=1, keepdim=True)).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "one_class")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits[:, labels[0]].sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "one_class")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits[:, 0].sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "one_picture")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits[0, labels[0]]
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "one_picture")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.max()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "probabilities")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.softmax(dim=1).gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "uses_loss")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = F.cross_entropy(logits, labels)
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "uses_loss")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = F.cross_entropy(logits, labels, reduction="sum")
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "all_classes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "averages_maps")
def channel_weights(model, layer, images, labels):
    seen = {}
    with layer.register_forward_hook(lambda module, args, output: seen.update(maps=output)):
        model(images)
    return seen["maps"].mean(dim=(2, 3))


@mistake("11.1", "grad_input")
def channel_weights(model, layer, images, labels):
    seen = []
    with layer.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append(grad_input[0])
    ):
        model(images).gather(1, labels[:, None]).sum().backward()
    return seen[0].mean(dim=(2, 3))


@mistake("11.1", "returns_nothing")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "needs_scalar")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None])
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "no_graph")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        with torch.no_grad():
            logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "no_graph")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
        score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "leaves_hook", points=3)
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    layer.register_forward_hook(keep)
    logits = model(images)
    score = logits.gather(1, labels[:, None]).sum()
    score.backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "crossed")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits[:, labels].sum().backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "mean_of_pictures")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).mean().backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "mean_of_pictures")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits[torch.arange(len(labels)), labels].mean().backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "all_classes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.mean().backward()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "relu_on_gradient")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return F.relu(seen["grads"]).mean(dim=(2, 3))


@mistake("11.1", "wrong_axes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return seen["grads"].mean(dim=(1, 2))


@mistake("11.1", "wrong_axes")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return seen["grads"].mean()


@mistake("11.1", "head_weights")
def channel_weights(model, layer, images, labels):
    return model.head.weight[labels] / 64


@mistake("11.1", "replaces_output")
def channel_weights(model, layer, images, labels):
    grads = []
    with layer.register_forward_hook(lambda module, args, output: output.register_hook(grads.append)):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return grads[0].mean(dim=(2, 3))


@mistake("11.1", "replaces_output")
def channel_weights(model, layer, images, labels):
    maps, grads = [], []
    with layer.register_forward_hook(lambda m, a, out: (maps.append(out), out.register_hook(grads.append))):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return grads[0].mean(dim=(2, 3))


@mistake("11.1", "no_backward")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum()
    return seen["grads"].mean(dim=(2, 3))


@mistake("11.1", "no_backward")
def channel_weights(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        logits = model(images)
    kept[0].retain_grad()
    logits.gather(1, labels[:, None]).sum()
    return kept[0].grad.mean(dim=(2, 3))


@mistake("11.1", "needs_index")
def channel_weights(model, layer, images, labels):
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels).sum().backward()
    return seen["grads"].mean(dim=(2, 3))


# --- 11.2 ---------------------------------------------------------------------------------------------------


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


# --- 11.3 ---------------------------------------------------------------------------------------------------


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        y, x = divmod(cam.argmax().item(), cam.shape[1])
        hits += x0 <= x < x1 and y0 <= y < y1
    return hits / len(cams)


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = [(cam[y0:y1, x0:x1].max() == cam.max()) for cam, (x0, y0, x1, y1) in zip(cams, boxes)]
    return torch.stack(hits).double().mean()


@alternative("11.3")
def hit_rate(cams, boxes):
    n, height, width = cams.shape
    y, x = torch.unravel_index(cams.reshape(n, -1).argmax(dim=1), (height, width))
    point = torch.stack([x, y], dim=1)
    return ((boxes[:, :2] <= point) & (point < boxes[:, 2:])).all(dim=1).float().mean()


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x < x1) & (y0 < y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "swapped")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= y) & (y < x1) & (y0 <= x) & (x < y1)
    return hit.float().mean().item()


@mistake("11.3", "wrong_width")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[1], place % cams.shape[1]
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "lowest")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmin(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "one_peak")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.argmax() % cams[0].numel()
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "one_axis")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1)
    return hit.float().mean().item()


@mistake("11.3", "percent")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 100 * hit.float().mean().item()


@mistake("11.3", "counts")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.sum().item()


@mistake("11.3", "counts")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return sum(hit.tolist())


@mistake("11.3", "misses")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 1 - hit.float().mean().item()


@mistake("11.3", "one_each")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float()


@mistake("11.3", "one_each")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.tolist()


@mistake("11.3", "changes_arguments")
def hit_rate(cams, boxes):
    cams -= cams.mean()
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "returns_nothing")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return None


@mistake("11.3", "centre_of_mass")
def hit_rate(cams, boxes):
    mass = cams.sum(dim=(1, 2))
    x = (cams.sum(dim=1) * torch.arange(cams.shape[2])).sum(dim=1) / mass
    y = (cams.sum(dim=2) * torch.arange(cams.shape[1])).sum(dim=1) / mass
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "percent")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, x1, y1 = boxes.T
    hits = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 100 * hits.float().mean()


@mistake("11.3", "one_peak")
def hit_rate(cams, boxes):
    place = torch.unravel_index(cams.argmax(), cams.shape)
    y, x = place[1], place[2]
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "fixed_width")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // 64, place % 64
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "sizes")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, w, h = boxes.T
    return ((x0 <= x) & (x < x0 + w) & (y0 <= y) & (y < y0 + h)).float().mean()


@mistake("11.3", "share_of_sum")
def hit_rate(cams, boxes):
    shares = []
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        shares.append(cam[y0:y1, x0:x1].sum() / cam.sum())
    return torch.stack(shares).mean()


@mistake("11.3", "mean_of_bools")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).mean()


@mistake("11.3", "swapped")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        hits += cam[x0:x1, y0:y1].max() == cam.max()
    return hits / len(cams)


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x <= x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 < y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "both_edges")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x <= x1) & (y0 < y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "one_axis")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "nothing_hit")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.argmax()
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "nothing_hit")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.sum() // len(cams)


# --- 11.4 ---------------------------------------------------------------------------------------------------


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        mask = torch.ones(output.shape[1])
        mask[channel] = 0
        return output * mask.view(1, -1, 1, 1)

    rows = torch.arange(len(labels))
    with torch.no_grad():
        before = model(images)[rows, labels]
        handle = layer.register_forward_hook(off)
        try:
            after = model(images)[rows, labels]
        finally:
            handle.remove()
    return before - after


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    def off(channel, module, args, output):
        keep = torch.arange(output.shape[1]) != channel
        return torch.where(keep[:, None, None], output, 0.0)

    drop = model(images)
    with layer.register_forward_hook(partial(off, channel)):
        drop = drop - model(images)
    return torch.stack([drop[i, label] for i, label in enumerate(labels)])


@mistake("11.4", "wrong_sign")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return after - before


@mistake("11.4", "no_return")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "picture_off")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "only_this_one")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        kept = torch.zeros_like(output)
        kept[:, channel] = output[:, channel]
        return kept

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "everything_off")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        return output * 0

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "wrong_class")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).max(dim=1).values
    with layer.register_forward_hook(off):
        after = model(images).max(dim=1).values
    return before - after


@mistake("11.4", "wrong_class")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images)
    with layer.register_forward_hook(off):
        after = model(images)
    return (before - after)[torch.arange(len(labels)), before.argmax(dim=1)]


@mistake("11.4", "probabilities")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).softmax(dim=1).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).softmax(dim=1).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "after_only")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return after


@mistake("11.4", "one_number")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return (before - after).mean()


@mistake("11.4", "all_logits")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images)
    with layer.register_forward_hook(off):
        after = model(images)
    return before - after


@mistake("11.4", "channel_of_input")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args):
        x = args[0].clone()
        x[:, channel] = 0
        return x

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_pre_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "returns_nothing")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return None


@mistake("11.4", "calls_now")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(print(end="")):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "wrong_arguments")
def channel_effect(model, layer, channel, images, labels):
    def off(output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "in_place", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "in_place", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output[:, channel].zero_()

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "leaves_hook", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    layer.register_forward_hook(off)
    after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "changes_weights")
def channel_effect(model, layer, channel, images, labels):
    before = model(images).gather(1, labels[:, None])[:, 0]
    with torch.no_grad():
        model.conv1.weight[channel] = 0
        model.conv1.bias[channel] = 0
    after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "absolute")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return (before - after).abs()


@mistake("11.4", "first_picture")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[0, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "first_picture")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return (before - after)[0]


@mistake("11.4", "mean_for_zero")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = output[:, channel].mean()
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "mean_for_zero")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = output[:, channel].mean(dim=(1, 2), keepdim=True)
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "ratio")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return (before - after) / before


@mistake("11.4", "ratio")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return after / before


@mistake("11.4", "crossed")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images)
    with layer.register_forward_hook(off):
        after = model(images)
    return (before - after)[:, labels]


@mistake("11.4", "no_return")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    with layer.register_forward_hook(off):
        before = model(images).gather(1, labels[:, None])[:, 0]
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "forecast")
def channel_effect(model, layer, channel, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = seen["grads"].mean(dim=(2, 3))
    return weights[:, channel] * seen["maps"][:, channel].sum(dim=(1, 2))


@mistake("11.4", "forecast")
def channel_effect(model, layer, channel, images, labels):
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach()
        output.register_hook(lambda grad: seen.update(grads=grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return (seen["grads"] * seen["maps"])[:, channel].sum(dim=(1, 2))


@mistake("11.4", "needs_index")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels)[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels)[:, 0]
    return before - after


@mistake("11.4", "keeps_dim")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])
    return before - after


@mistake("11.4", "every_pair")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])
    return before - after


@mistake("11.4", "every_pair")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


@mistake("11.4", "returns_list")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return (before - after).tolist()
