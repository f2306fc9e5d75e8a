"""Answers to 11.1, `channel_weights`."""

import torch
import torch.nn.functional as F

from tests.answers import alternative, mistake


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
