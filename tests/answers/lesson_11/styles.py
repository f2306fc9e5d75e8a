"""Right answers to the exercises of lesson 11 in further styles."""

import copy
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from hookedu import record
from tests.answers import alternative


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    name = next(name for name, module in model.named_modules() if module is layer)
    with record(model, layers=[name], gradients=True) as rec:
        model(images).gather(1, labels.view(-1, 1)).sum().backward()
    return rec[name].gradient.mean(dim=(-1, -2))


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    class Keep:
        grads = None

        def __call__(self, module, args, output):
            output.register_hook(self.store)

        def store(self, grad):
            self.grads = grad.clone()

    keep = Keep()
    with layer.register_forward_hook(keep):
        chosen = F.one_hot(labels, model(images).shape[1])
    with layer.register_forward_hook(keep):
        model(images).backward(gradient=chosen.float())
    return F.adaptive_avg_pool2d(keep.grads, 1).flatten(1)


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    maps = None

    def keep(module, args, output):
        nonlocal maps
        maps = output

    handle = layer.register_forward_hook(keep)
    try:
        logits = model(images)
    finally:
        handle.remove()
    rows = [torch.autograd.grad(logits[i, k], maps, retain_graph=True)[0][i] for i, k in enumerate(labels)]
    return torch.stack(rows).mean((-2, -1))


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    twin, kept = copy.deepcopy(model), {}
    for (_, one), (_, other) in zip(model.named_modules(), twin.named_modules(), strict=True):
        if one is layer:
            other.register_forward_hook(lambda m, a, out: kept.update(out=out))
    logits = twin(images)
    logits.take_along_dim(labels[:, None], 1).sum().backward(inputs=[kept["out"]])
    g = kept["out"].grad
    return g.sum(dim=(2, 3)) / (g.shape[2] * g.shape[3])


@alternative("11.1")
def channel_weights(model, layer, images, labels):
    seen = []

    def hook(module, args, output):
        if module is layer:
            output.register_hook(seen.append)

    handle = nn.modules.module.register_module_forward_hook(hook)
    score = sum(row[label] for row, label in zip(model(images), labels, strict=True))
    handle.remove()
    score.backward()
    return torch.from_numpy(seen.pop().numpy().mean(axis=(2, 3)))


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    name = next(name for name, module in model.named_modules() if module is layer)
    with record(model, layers=[name], gradients=True) as rec:
        model(images)[range(len(labels)), labels.tolist()].sum().backward()
    entry = rec[name]
    weights = entry.gradient.mean((2, 3))
    cams = [
        F.relu(torch.tensordot(w, maps, dims=1)) for w, maps in zip(weights, entry.activation, strict=True)
    ]
    return F.interpolate(torch.stack(cams)[:, None], images.shape[2:], mode="bilinear").squeeze(1)


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    @contextmanager
    def watching():
        kept = {}

        def keep(module, args, output):
            kept["maps"] = output.detach().clone()
            output.register_hook(partial(kept.__setitem__, "grads"))

        handle = layer.register_forward_hook(keep)
        try:
            yield kept
        finally:
            handle.remove()

    with watching() as kept:
        picked = model(images).gather(1, labels[:, None])
    picked.backward(torch.ones_like(picked))
    alpha = kept["grads"].mean((2, 3), keepdim=True)
    cam = torch.clamp((alpha * kept["maps"]).sum(1), min=0)
    return torch.nn.functional.upsample(cam[:, None], size=images.shape[-2:], mode="bilinear").view(
        len(images), *images.shape[-2:]
    )


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    def one(image, label):
        kept = []

        def keep(module, args, output):
            kept.append(output.detach().clone())
            output.register_hook(kept.append)

        with layer.register_forward_hook(keep):
            logit = model(image[None])[0, label]
        logit.backward()
        maps, grad = kept
        cam = sum(g.mean() * m for g, m in zip(grad[0], maps[0], strict=True)).relu()
        return F.interpolate(cam[None, None], size=tuple(image.shape[1:]), mode="bilinear")[0, 0]

    return torch.stack([one(image, label) for image, label in zip(images, labels, strict=True)])


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    class Store:
        def forward(self, module, args, output):
            self.maps = output.clone()
            output.register_hook(self.backward)

        def backward(self, grad):
            self.grad = grad

    store = Store()
    with ExitStack() as stack:
        stack.enter_context(layer.register_forward_hook(store.forward))
        stack.enter_context(torch.enable_grad())
        model(images)[torch.arange(len(images)), labels].sum().backward()
    with torch.no_grad():
        weights = store.grad.flatten(2).mean(2)[..., None, None]
        cam = torch.maximum((weights * store.maps).sum(1, keepdim=True), torch.zeros(1))
        return F.interpolate(cam, images.shape[-2:], mode="bilinear", align_corners=False)[:, 0]


@alternative("11.2")
def grad_cam(model, layer, images, labels):
    maps, grads = {}, {}
    layer_hook = layer.register_forward_hook(lambda m, a, out: maps.update({m: out.detach().clone()}))
    grad_hook = layer.register_forward_hook(
        lambda m, a, out: out.register_hook(lambda grad: grads.update({m: grad})) and None
    )
    try:
        logits = model(images)
        logits.backward(F.one_hot(labels, logits.shape[-1]).to(logits))
    finally:
        layer_hook.remove(), grad_hook.remove()
    cam = torch.einsum("nchw,nc->nhw", maps[layer], grads[layer].mean((2, 3)))
    cam[cam < 0] = 0
    H, W = images.shape[-2:]
    return F.interpolate(cam[:, None], (H, W), mode="bilinear")[:, 0, :]


@alternative("11.3")
def hit_rate(cams, boxes):
    def inside(cam, box):
        y, x = np.unravel_index(np.argmax(cam), cam.shape)
        x0, y0, x1, y1 = box
        return x0 <= x < x1 and y0 <= y < y1

    return np.mean([inside(cam, box) for cam, box in zip(cams.numpy(), boxes.numpy(), strict=True)])


@alternative("11.3")
def hit_rate(cams, boxes):
    n, height, width = cams.shape
    x, y = torch.arange(width).view(1, 1, width), torch.arange(height).view(1, height, 1)
    x0, y0, x1, y1 = (edge.view(n, 1, 1) for edge in boxes.unbind(dim=1))
    mask = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
    masked = cams.masked_fill(~mask, float("-inf"))
    return (masked.amax((1, 2)) == cams.amax((1, 2))).to(torch.float64).mean().item()


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = []
    for cam, box in zip(cams.tolist(), boxes.tolist(), strict=True):
        top = max(map(max, cam))
        y = next(i for i, row in enumerate(cam) if top in row)
        hits.append(cam[y].index(top) in range(box[0], box[2]) and y in range(box[1], box[3]))
    return float(sum(hits)) / len(hits)


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = total = 0
    while total < len(cams):
        cam, (x0, y0, x1, y1) = cams[total], boxes[total]
        y, x = divmod(int(torch.argmax(cam)), cam.size(-1))
        hits += bool(x0 <= x and x < x1 and y0 <= y and y < y1)
        total += 1
    return hits / total


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    class Off:
        def __init__(self, channel):
            self.channel = channel

        def __call__(self, module, args, output):
            return output.index_fill(1, torch.tensor([self.channel]), 0.0)

    def logits():
        return model(images).take_along_dim(labels[:, None], dim=1).squeeze(1)

    usual = logits()
    handle = layer.register_forward_hook(Off(channel))
    try:
        return usual - logits()
    finally:
        handle.remove()


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        if module is layer:
            parts = list(output.unbind(1))
            parts[channel] = torch.zeros_like(parts[channel])
            return torch.stack(parts, 1)

    rows = range(len(labels))
    before = model(images)[rows, labels]
    handle = nn.modules.module.register_module_forward_hook(off)
    after = model(images)[rows, labels]
    handle.remove()
    return before - after


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    @contextmanager
    def switched_off():
        def off(module, args, kwargs, output):
            kept = output.detach().numpy().copy()
            kept[:, channel] = 0
            return torch.from_numpy(kept)

        handle = layer.register_forward_hook(off, with_kwargs=True)
        yield
        handle.remove()

    with torch.no_grad():
        runs = [model(images)]
        with switched_off():
            runs.append(model(images))
    return torch.tensor([(runs[0][i, k] - runs[1][i, k]).item() for i, k in enumerate(labels.tolist())])


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    enabled = False

    def off(module, args, output):
        if enabled:
            return torch.cat([output[:, :channel], output[:, [channel]] * 0, output[:, channel + 1 :]], 1)

    with layer.register_forward_hook(off):
        first = model(images)
        enabled = True
        second = model(images)
    return torch.diagonal((first - second)[:, labels])


@alternative("11.4")
def channel_effect(model, layer, channel, images, labels):
    twin = copy.deepcopy(model)
    names = {module: name for name, module in model.named_modules()}

    def off(module, args, output):
        return output - output * F.one_hot(torch.tensor(channel), output.shape[1]).view(-1, 1, 1)

    twin.get_submodule(names[layer]).register_forward_hook(off)
    drop = model(images) - twin(images)
    return (drop * F.one_hot(labels, drop.shape[1])).sum(dim=1)
