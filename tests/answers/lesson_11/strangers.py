"""Wrong answers to lesson 11 from readers who did not know the checks."""

from functools import partial

import torch
import torch.nn.functional as F  # noqa: F401  the reference answers use it

from tests.answers import edited, mistake, unnamed

edited_unnamed = partial(edited, named=False)


edited_unnamed("11.1", "weights", ("(2, 3))", "(2, 3)).unbind(0)"))
edited_unnamed(
    "11.1", "weights", ('seen["grads"].mean(dim=(2, 3))', 'seen["grads"].flatten(2).median(dim=2).values')
)
edited_unnamed("11.1", "weights", ('seen["grads"].mean(dim=(2, 3))', 'seen["grads"].amax(dim=(2, 3))'))
edited_unnamed("11.1", "weights", ('seen["grads"].mean(dim=(2, 3))', 'seen["grads"][:, :, 0, 0]'))
edited("11.1", "squeezes", ("(2, 3))", "(2, 3)).squeeze()"))
edited_unnamed("11.1", "weights", ("(2, 3))", "(2, 3)).softmax(dim=1)"))
edited_unnamed("11.1", "weights", ("gather", "log_softmax(dim=1).gather"))
edited_unnamed("11.1", "weights", ("with layer", "with model.relu2"))
edited("11.1", "mode", ("    with layer", "    model.eval()\n    with layer"), points=3)
edited(
    "11.1",
    "mode",
    ("    with layer", "    was = model.training\n    model.eval()\n    with layer"),
    ("    return", "    model.train(was)\n    return"),
    points=3,
)
edited("11.1", "requires_grad", ("    with layer", "    images.requires_grad_()\n    with layer"), points=3)
edited(
    "11.1", "requires_grad", ("    with layer", "    model.requires_grad_(True)\n    with layer"), points=3
)
edited("11.1", "others", ("    return", "    layer._forward_hooks.clear()\n    return"), points=3)
edited("11.1", "rng", ("    with layer", "    torch.manual_seed(0)\n    with layer"), points=3)
edited(
    "11.1",
    "swallows",
    (
        "        logits = model(images)",
        "        try:\n            logits = model(images)\n        except RuntimeError:\n            return None",
    ),
    points=3,
)

edited("11.2", "mode", ("    with layer", "    model.eval()\n    with layer"), points=5)
edited_unnamed("11.2", "cam", ("    with layer", "    model.train()\n    with layer"))
edited(
    "11.2",
    "requires_grad",
    ("    with layer", "    for p in model.parameters():\n        p.requires_grad = True\n    with layer"),
    points=5,
)
edited(
    "11.2",
    "values",
    ("    weights", "    with torch.no_grad():\n        model.head.weight.zero_()\n    weights"),
    points=5,
)
edited("11.2", "nearest", ("bilinear", "area"))
edited_unnamed("11.2", "cam", (".relu()", ".sigmoid()"))
edited_unnamed("11.2", "cam", ("keepdim=True)\n    cam", "keepdim=True).softmax(dim=1)\n    cam"))
edited_unnamed("11.2", "cam", ('seen["maps"])', 'seen["maps"].relu().sqrt())'))
edited("11.2", "normalised", ("[:, 0]", "[:, 0] / cam.amax()"))
edited("11.2", "returns_list", ("[:, 0]", "[:, 0].tolist()"))

edited(
    "11.3",
    "dark_maps",
    ("    x0, y0", "    lit = cams.amax((1, 2)) != cams.amin((1, 2))\n    x0, y0"),
    ("((x0", "(lit & (x0"),
)
edited(
    "11.3",
    "dark_maps",
    (
        "    place =",
        "    lit = cams.amax((1, 2)) != cams.amin((1, 2))\n    boxes = boxes[lit]\n    cams = cams[lit]\n    place =",
    ),
)
edited_unnamed("11.3", "rate", ("    place =", "    cams = cams.clamp(min=0)\n    place ="))
edited("11.3", "absolute", ("    place =", "    cams = cams.abs()\n    place ="))
edited("11.3", "nothing_hit", (".mean()", ".median()"))
edited("11.3", "nothing_hit", (".mean().item()", ".mean().round().item()"))
edited_unnamed("11.3", "rate", (".item()", ".item() > 0.5"))
edited("11.3", "one_each", (".mean().item()", ".tolist()"))


@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist(), strict=True):
        y, x = (cam == cam.max()).nonzero().float().mean(0)
        hits += int(x0 <= x < x1 and y0 <= y < y1)
    return hits / len(cams)


@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist(), strict=True):
        inside = torch.zeros_like(cam)
        inside[y0:y1, x0:x1] = 1
        hits += int((cam * inside).max() == cam.max())
    return hits / len(cams)


edited("11.4", "mode", ("    before", "    model.eval()\n    before"), points=4)
edited(
    "11.4", "hooks", ("with layer", "handle = layer"), ("(off):\n        after", "(off)\n    after"), points=4
)
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel + 1 :] = 0"))
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel] = 1"))
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel, 0, 0] = 0"))
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel] *= 0.5"))
edited("11.4", "channel_zero", ("        output[:", "        if channel:\n            output[:"))
edited_unnamed("11.4", "effect", ("[:, 0]", "[:, 0].numpy(force=True)"))
edited("11.4", "mean_for_zero", ("= 0", "= output[:, channel].mean(dim=0)"))
edited("11.4", "rng", ("    before", "    torch.manual_seed(0)\n    before"), points=4)
edited("11.4", "attributes", ("    before", "    layer.inplace = True\n    before"), points=4)


@mistake("11.4", "changes_weights")
def channel_effect(model, layer, channel, images, labels):
    before = model(images).gather(1, labels[:, None])[:, 0]
    for parameter in layer.parameters():
        parameter.data[channel] = 0
    after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


# Of points that tie, the row of one and the column of another.
@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    rows, columns = cams.amax(dim=2).argmax(dim=1), cams.amax(dim=1).argmax(dim=1)
    conditions = (
        columns >= boxes[:, 0],
        rows >= boxes[:, 1],
        columns < boxes[:, 2],
        rows < boxes[:, 3],
    )
    return torch.stack(conditions).all(dim=0).sum().item() / len(cams)


edited_unnamed("11.3", "rate", ("cams.flatten", "cams.half().flatten"))
edited("11.3", "in_list", ("return ((x0", "return [((x0"), (".item()", ".item()]"))


@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist(), strict=True):
        hits += int(cam[y0:y1, x0:x1].max() >= cam.max() - 1e-3)
    return hits / len(cams)


edited_unnamed("11.1", "weights", ("(2, 3))", "(2, 3)).double()"))
edited_unnamed("11.2", "cam", ("size=images.shape[-2:]", "scale_factor=images.shape[-1] // cam.shape[-1]"))
edited(
    "11.2",
    "relu_on_products",
    (".sum(dim=1, keepdim=True).relu()", ".relu().sum(dim=1, keepdim=True)"),
)
edited("11.2", "relu_on_maps", ('seen["maps"])', 'seen["maps"].relu())'))
edited("11.2", "returns_list", ("return F", "return tuple(F"), ("[:, 0]", "[:, 0])"))
edited("11.4", "grad", ("    return (before", "    model.zero_grad()\n    return (before"), points=4)
edited(
    "11.4",
    "grad",
    ("    return (before", "    for p in model.parameters():\n        p.grad = None\n    return (before"),
    points=4,
)
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel] = output[:, channel].clamp(max=0)"))
edited_unnamed("11.4", "effect", ("[:, channel] = 0", "[:, channel] = output.amin()"))
edited_unnamed("11.4", "effect", ("[:, 0]", "[:3, 0]"))
edited_unnamed("11.4", "effect", ("[:, 0]", "[:, 0].double()"))
edited("11.4", "squeezes", ("[:, 0]", ".squeeze()"))
edited("11.4", "returns_list", ("return (before", "return tuple((before"), ("[:, 0]", "[:, 0])"))


@mistake("11.4", "in_place", points=4)
def channel_effect(model, layer, channel, images, labels):
    def off(module, args, output):
        changed = output.detach().clone()
        changed[:, channel] = 0
        output.data = changed

    before = model(images).gather(1, labels[:, None])[:, 0]
    with layer.register_forward_hook(off):
        after = model(images).gather(1, labels[:, None])[:, 0]
    return before - after


edited_unnamed("11.1", "weights", ("labels[:, None]", "labels.sort().values[:, None]"))
edited("11.2", "normalised", ("return F", "cam = cam / cam.max()\n    return F"))
edited_unnamed("11.2", "cam", (".relu()", ".clamp(0, 1)"))
edited_unnamed("11.3", "rate", (".float().mean().item()", ".sum().item(), len(cams)"))
