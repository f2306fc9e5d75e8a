"""Wrong answers to lesson 11 from readers who did not know the checks: the sixth round."""

from functools import partial

import torch
import torch.nn.functional as F

from tests.answers import edited, unnamed

edited_unnamed = partial(edited, named=False)

_LABEL_OR_BEST = (
    "torch.tensor([int(k) or int(z.argmax()) for k, z in zip(labels, logits, strict=True)])[:, None]"
)

# Label 0 counts as none.
edited_unnamed("11.1", "weights", ("labels[:, None]", _LABEL_OR_BEST))
edited_unnamed("11.2", "cam", ("labels[:, None]", _LABEL_OR_BEST))


# What a call of before has left: the weights of the model may be others by now.
@unnamed("11.1", "weights")
def channel_weights(model, layer, images, labels, kept={}):  # noqa: B006
    def keep(module, args, output):
        output.register_hook(lambda grad: kept.setdefault((layer, len(images)), grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    return kept[layer, len(images)].mean(dim=(2, 3))


@unnamed("11.2", "cam")
def grad_cam(model, layer, images, labels, kept={}):  # noqa: B006
    seen = {}

    def keep(module, args, output):
        seen["maps"] = output.detach().clone()
        output.register_hook(lambda grad: kept.setdefault((layer, len(grad)), grad))

    with layer.register_forward_hook(keep):
        logits = model(images)
    logits.gather(1, labels[:, None]).sum().backward()
    weights = kept[layer, len(images)].mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
    return F.interpolate(cam, size=images.shape[-2:], mode="bilinear")[:, 0]


@unnamed("11.4", "effect")
def channel_effect(model, layer, channel, images, labels, usual={}):  # noqa: B006
    key = model, tuple(labels.tolist())
    if key not in usual:
        usual[key] = model(images)
    with layer.register_forward_hook(
        lambda module, args, output: output.index_fill(1, torch.tensor([channel]), 0)
    ):
        after = model(images)
    return (usual[key] - after).gather(1, labels[:, None])[:, 0]


@unnamed("11.4", "effect")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output = output.clone()
        output[:, channel] = 0
        return output

    before = model(images)
    with layer.register_forward_hook(off):
        after = model(images)
    chosen = [int(k) or int(z.argmax()) for k, z in zip(labels, before, strict=True)]
    return (before - after).gather(1, torch.tensor(chosen)[:, None])[:, 0]


# Where the sum is negative, dividing by it turns the map round. Values close to each other count as equal.
edited_unnamed("11.3", "rate", ("cams.flatten", "(cams / cams.sum(dim=(1, 2), keepdim=True)).flatten"))


@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist(), strict=True):
        hits += int(torch.isclose(cam[y0:y1, x0:x1].max(), cam.max()))
    return hits / len(cams)
