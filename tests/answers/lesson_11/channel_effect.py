"""Answers to 11.4, `channel_effect`."""

from functools import partial

import torch

from tests.answers import alternative, mistake


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
