"""Answers to 11.4, `channel_effect`."""

from functools import partial

import torch

from tests.answers import alternative, edited, mistake


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


edited("11.4", "wrong_sign", ("before - after", "after - before"))
edited("11.4", "no_return", ("        return output\n", ""))
edited("11.4", "picture_off", ("[:, channel]", "[channel]"))


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


edited("11.4", "everything_off", ("return output", "return output * 0"))
edited(
    "11.4",
    "wrong_class",
    ("before = model(images)", "before = model(images).max(dim=1).values"),
    ("after = model(images)", "after = model(images).max(dim=1).values"),
    ("(before - after).gather(1, labels[:, None])[:, 0]", "before - after"),
)
edited(
    "11.4",
    "wrong_class",
    (".gather(1, labels[:, None])[:, 0]", "[torch.arange(len(labels)), before.argmax(dim=1)]"),
)
edited(
    "11.4",
    "probabilities",
    ("before = model(images)", "before = model(images).softmax(dim=1)"),
    ("after = model(images)", "after = model(images).softmax(dim=1)"),
)
edited("11.4", "after_only", ("(before - after)", "after"))
edited("11.4", "one_number", ("[:, 0]", "[:, 0].mean()"))
edited("11.4", "all_logits", ("(before - after).gather(1, labels[:, None])[:, 0]", "before - after"))


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


edited("11.4", "returns_nothing", ("(before - after).gather(1, labels[:, None])[:, 0]", "None"))
edited("11.4", "calls_now", ("hook(off)", 'hook(print(end=""))'))
edited("11.4", "wrong_arguments", ("off(module, args, output)", "off(output)"))
edited("11.4", "in_place", ("        output = output.clone()\n", ""), points=4)


@mistake("11.4", "in_place", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        output[:, channel].zero_()

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


edited("11.4", "hooks", ("with layer", "layer"), ("(off):\n        after", "(off)\n    after"), points=4)


@mistake("11.4", "changes_weights")
def channel_effect(model, layer, channel, images, labels):
    before = model(images).gather(1, labels[:, None])[:, 0]
    with torch.no_grad():
        model.conv1.weight[channel] = 0
        model.conv1.bias[channel] = 0
    after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


edited("11.4", "absolute", ("[:, 0]", "[:, 0].abs()"))
edited("11.4", "first_picture", ("[:, channel]", "[0, channel]"))
edited("11.4", "first_picture", ("[:, 0]", "[:, 0][0]"))
edited("11.4", "mean_for_zero", ("= 0", "= output[:, channel].mean()"))
edited("11.4", "mean_for_zero", ("= 0", "= output[:, channel].mean(dim=(1, 2), keepdim=True)"))
edited("11.4", "ratio", ("(before - after)", "((before - after) / before)"))
edited("11.4", "ratio", ("before - after", "after / before"))
edited("11.4", "crossed", (".gather(1, labels[:, None])[:, 0]", "[:, labels]"))
edited(
    "11.4",
    "no_return",
    ("    before = model(images)\n", ""),
    ("        after", "        before = model(images)\n        after"),
)


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


edited("11.4", "needs_index", ("labels[:, None]", "labels"))
edited("11.4", "keeps_dim", ("[:, 0]", ""))


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


edited(
    "11.4",
    "every_pair",
    ("[:, 0]\n", "\n"),
    ("(1, labels[:, None])\n    return", "(1, labels[:, None])[:, 0]\n    return"),
    of=channel_effect,
)
edited("11.4", "returns_list", ("[:, 0]", "[:, 0].tolist()"))
