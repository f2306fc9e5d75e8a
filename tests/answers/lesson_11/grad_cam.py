"""Answers to 11.2, `grad_cam`."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative, edited, mistake


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    kept = []

    def keep(module, args, output):
        kept.append(output.detach().clone())
        output.register_hook(kept.append)

    with layer.register_forward_hook(keep):
        score = model(images)[torch.arange(len(labels)), labels].sum()
    score.backward()
    cam = torch.einsum("nc,nchw->nhw", kept[1].mean(dim=(2, 3)), kept[0])
    return nn.Upsample(images.shape[-2:], mode="bilinear", align_corners=False)(F.relu(cam)[:, None]).squeeze(
        1
    )


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    maps, grads = [], []
    handles = [
        layer.register_forward_hook(lambda module, args, output: maps.append(output.detach().clone())),
        layer.register_forward_hook(lambda module, args, output: output.register_hook(grads.append) and None),
    ]
    model.zero_grad()
    model(images).gather(1, labels[:, None]).sum().backward()
    for handle in handles:
        handle.remove()
    weights = grads[0].mean(dim=(2, 3))
    cam = (weights[:, :, None, None] * maps[0]).sum(dim=1).clamp(min=0)
    return F.interpolate(cam.unsqueeze(1), tuple(images.shape[2:]), mode="bilinear").squeeze(1)


# A layer whose output is copied for the rest of the model: what comes later works in place on the copy.
@alternative("11.2")
def grad_cam(model, layer, images, labels):
    kept = []

    def keep(module, args, output):
        kept.append(output)
        return output.clone()

    with layer.register_forward_hook(keep):
        score = model(images)[torch.arange(len(labels)), labels].sum()
    (grads,) = torch.autograd.grad(score, kept)
    cam = torch.einsum("nc,nchw->nhw", grads.mean(dim=(2, 3)), kept[0].detach()).relu()
    return F.interpolate(cam[:, None], images.shape[2:], mode="bilinear")[:, 0]


@mistake("11.2", "behind")
def grad_cam(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(
        lambda module, args, output: kept.extend([output, output.detach().clone()])
    ):
        score = model(images)[torch.arange(len(labels)), labels].sum()
    (grads,) = torch.autograd.grad(score, kept[0])
    cam = torch.einsum("nc,nchw->nhw", grads.mean(dim=(2, 3)), kept[1])
    return nn.Upsample(images.shape[-2:], mode="bilinear", align_corners=False)(F.relu(cam)[:, None]).squeeze(
        1
    )


@mistake("11.2", "full_hook")
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


edited("11.2", "no_relu", (".relu()", ""))
edited("11.2", "relu_late", (".relu()", ""), ("[:, 0]", "[:, 0].relu()"))
edited("11.2", "absolute", (".relu()", ".abs()"))
edited("11.2", "relu_on_weights", ("(2, 3), keepdim=True)", "(2, 3), keepdim=True).relu()"))
edited("11.2", "not_upsampled", ('F.interpolate(cam, size=images.shape[-2:], mode="bilinear")', "cam"))
edited("11.2", "nearest", (', mode="bilinear"', ""))
edited("11.2", "align_corners", ('"bilinear"', '"bilinear", align_corners=True'))
edited("11.2", "height_and_width", ("images.shape[-2:]", "(images.shape[3], images.shape[2])"))
edited("11.2", "keeps_dim", ("[:, 0]", ""))
edited(
    "11.2",
    "normalised",
    ("return F", "cam = F"),
    ("[:, 0]", "\n    return (cam / cam.amax(dim=(2, 3), keepdim=True))[:, 0]"),
)
edited("11.2", "no_average", (".mean(dim=(2, 3), keepdim=True)", ""))
edited("11.2", "unweighted", ('(weights * seen["maps"]).sum', 'seen["maps"].mean'))
edited("11.2", "averages_channels", (".sum(dim=1", ".mean(dim=1"))
edited("11.2", "gradient_only", ('(weights * seen["maps"])', 'seen["grads"]'))
edited("11.2", "broadcast", ("(2, 3), keepdim=True", "(2, 3)"))
edited("11.2", "needs_four_dimensions", ("dim=1, keepdim=True", "dim=1"), ("[:, 0]", ""))
edited("11.2", "needs_scalar", (".sum().backward", ".backward"))
edited(
    "11.2",
    "wrong_layer",
    ("output.detach().clone()", "args[0].detach()"),
    ("output.register", "args[0].register"),
)
edited("11.2", "wrong_layer", ("with layer", "with model.conv2"))
edited("11.2", "wrong_class", ("gather(1, labels[:, None])", "max(dim=1).values"))
edited("11.2", "one_class", (".gather(1, labels[:, None])", "[:, labels[0]]"))
edited("11.2", "one_picture", (".gather(1, labels[:, None]).sum()", "[0, labels[0]]"))
edited("11.2", "probabilities", ("gather", "softmax(dim=1).gather"))
edited("11.2", "uses_loss", ("logits.gather(1, labels[:, None]).sum()", "F.cross_entropy(logits, labels)"))
edited("11.2", "all_classes", (".gather(1, labels[:, None])", ""))
edited("11.2", "returns_nothing", ("return F", "F"))
edited(
    "11.2",
    "no_graph",
    ("        logits = model", "        with torch.no_grad():\n            logits = model"),
)
edited("11.2", "attached", (".detach().clone()", ".clone()"), points=5)
edited("11.2", "overwritten", (".detach().clone()", ""))
edited(
    "11.2",
    "hooks",
    ("with layer", "layer"),
    ("(keep):\n        logits", "(keep)\n    logits"),
    points=5,
)
edited("11.2", "squeezes", ("[:, 0]", ".squeeze()"))
edited("11.2", "fixed_size", ("images.shape[-2:]", "(64, 64)"))
edited("11.2", "fixed_size", ("size=images.shape[-2:]", "scale_factor=8"))
edited("11.2", "sums_gradient", ("mean(dim=(2, 3)", "sum(dim=(2, 3)"))
edited("11.2", "mean_of_weights", ("(2, 3)", "(0, 2, 3)"))
edited("11.2", "mean_of_pictures", ("sum().backward", "mean().backward"))
edited("11.2", "crossed", (".gather(1, labels[:, None])", "[:, labels]"))
edited("11.2", "bicubic", ("bilinear", "bicubic"))
edited("11.2", "returns_list", ("return F", "return list(F"), ("[:, 0]", "[:, 0])"))


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


edited(
    "11.2",
    "no_backward",
    ("    logits.gather(1, labels[:, None]).sum().backward()\n", ""),
    ("    cam =", "    logits.gather(1, labels[:, None]).sum().backward()\n    cam ="),
)
edited("11.2", "needs_index", ("labels[:, None]", "labels"))
edited("11.2", "square", ("shape[-2:]", "shape[-1]"))
edited("11.2", "square", ("shape[-2:]", "shape[2]"))


@mistake("11.2", "overwritten")
def grad_cam(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        score = model(images)[torch.arange(len(labels)), labels].sum()
    (grads,) = torch.autograd.grad(score, kept[0])
    cam = torch.einsum("nc,nchw->nhw", grads.mean(dim=(2, 3)), kept[0].detach())
    return nn.Upsample(images.shape[-2:], mode="bilinear", align_corners=False)(F.relu(cam)[:, None]).squeeze(
        1
    )


edited("11.2", "overwritten", ("output.detach().clone()", "output.detach()"))
edited("11.2", "overwritten", ("output.detach().clone()", "output.detach().view_as(output)"))
edited("11.2", "no_relu", ("output.detach().clone()", "output.detach()"), (".relu()", ""))
