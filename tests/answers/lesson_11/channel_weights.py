"""Answers to 11.1, `channel_weights`."""

import torch

from tests.answers import alternative, edited, mistake


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


edited("11.1", "sums", (".mean", ".sum"))
edited("11.1", "keeps_dims", ("dim=(2, 3)", "dim=(2, 3), keepdim=True"))
edited("11.1", "keeps_dims", ('seen["grads"].mean(dim=(2, 3))', 'F.adaptive_avg_pool2d(seen["grads"], 1)'))
edited("11.1", "no_average", (".mean(dim=(2, 3))", ""))
edited("11.1", "wrong_axes", ("(2, 3)", "1"))
edited("11.1", "wrong_axes", ("(2, 3)", "(0, 2, 3)"))
edited("11.1", "wrong_axes", ("(2, 3)", "(1, 2, 3)"))
edited("11.1", "absolute", ("(2, 3))", "(2, 3)).abs()"))
edited("11.1", "absolute", ("(2, 3))", "(2, 3)).relu()"))
edited("11.1", "wrong_class", ("gather(1, labels[:, None])", "max(dim=1).values"))
edited("11.1", "wrong_class", ("labels[:, None]", "logits.argmax(dim=1, keepdim=True)"))
edited("11.1", "one_class", (".gather(1, labels[:, None])", "[:, labels[0]]"))
edited("11.1", "one_class", (".gather(1, labels[:, None])", "[:, 0]"))
edited("11.1", "one_picture", (".gather(1, labels[:, None]).sum()", "[0, labels[0]]"))
edited("11.1", "one_picture", ("gather(1, labels[:, None]).sum()", "max()"))
edited("11.1", "probabilities", ("gather", "softmax(dim=1).gather"))
edited(
    "11.1",
    "uses_loss",
    ("logits.gather(1, labels[:, None]).sum()", "torch.nn.functional.cross_entropy(logits, labels)"),
)
edited(
    "11.1",
    "uses_loss",
    (
        "logits.gather(1, labels[:, None]).sum()",
        'torch.nn.functional.cross_entropy(logits, labels, reduction="sum")',
    ),
)
edited("11.1", "all_classes", (".gather(1, labels[:, None])", ""))


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


edited("11.1", "returns_nothing", ("return seen", "seen"))
edited("11.1", "needs_scalar", (".sum().backward", ".backward"))
edited(
    "11.1",
    "no_graph",
    ("        logits = model", "        with torch.no_grad():\n            logits = model"),
)
edited("11.1", "no_graph", ("        output.", "        output = output.detach()\n        output."))
edited(
    "11.1",
    "hooks",
    ("with layer", "layer"),
    ("(keep):\n        logits", "(keep)\n    logits"),
    points=3,
)
edited("11.1", "crossed", (".gather(1, labels[:, None])", "[:, labels]"))
edited("11.1", "mean_of_pictures", ("sum().backward", "mean().backward"))
edited(
    "11.1",
    "mean_of_pictures",
    (".gather(1, labels[:, None]).sum()", "[torch.arange(len(labels)), labels].mean()"),
)
edited("11.1", "all_classes", ("gather(1, labels[:, None]).sum()", "mean()"))
edited("11.1", "relu_on_gradient", ('seen["grads"].', 'torch.relu(seen["grads"]).'))
edited("11.1", "wrong_axes", ("(2, 3)", "(1, 2)"))
edited("11.1", "wrong_axes", ("dim=(2, 3)", ""))


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


edited("11.1", "no_backward", (".backward()", ""))


@mistake("11.1", "no_backward")
def channel_weights(model, layer, images, labels):
    kept = []
    with layer.register_forward_hook(lambda module, args, output: kept.append(output)):
        logits = model(images)
    kept[0].retain_grad()
    logits.gather(1, labels[:, None]).sum()
    return kept[0].grad.mean(dim=(2, 3))


edited("11.1", "needs_index", ("labels[:, None]", "labels"))
edited("11.1", "transposed", ("(2, 3))", "(2, 3)).T"))
