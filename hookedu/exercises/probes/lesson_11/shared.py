"""A net without square maps, and what is observed of answers that explain it, for the probes of lesson 11."""

from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probing import Draw
from hookedu.exercises.tools import copies, other_weights, someones

OVERWRITTEN, AFTER = "conv2", "relu2"  # the layer in front of a ReLU that works in place, and that ReLU


class Net(NamedTuple):
    """A small net of random weights, pictures, and for each picture a class other than the likeliest one.

    The head sees every position of the last maps, so gradients differ between positions: a missing average shows,
    which it would not before a global average pool.
    """

    model: nn.Sequential
    images: torch.Tensor
    labels: torch.Tensor
    used: bool = False  # the answer is called once before, while the net has other weights


class Overwriting(nn.Module):
    """A ReLU that works in place and has no `inplace` to be switched off meanwhile."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu_()


@someones
def _look(module: nn.Module, args: Any, output: Any) -> None:
    """Stand on the net as the hook of a third party."""


def make_net(rng: Draw, pictures: int = 3) -> Net:
    """Return a net in which two labels differ, as do the likeliest classes, and one label is that of two pictures.

    It is in training mode but for its dropout, one parameter is frozen, another has a gradient of before: whoever changes
    that and does not restore it one by one is found out. The sizes of pictures and maps have no whole ratio.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(2, 3, 3, padding=1),
        relu1=nn.ReLU(),
        pool=nn.MaxPool2d(2),
        drop=nn.Dropout().eval(),
        conv2=nn.Conv2d(3, 4, 3, padding=1),
        relu2=nn.ReLU(),
        mix=nn.Conv2d(4, 4, 1),
        flat=nn.Flatten(),
        head=nn.Linear(4 * 3 * 5, 4),
    )
    model = nn.Sequential(layers)
    model.get_parameter("conv1.weight").requires_grad_(False)
    model.get_parameter("conv2.bias").grad = torch.ones(4)
    for layer in ("relu1", "conv2", "relu2", "mix"):
        model.get_submodule(layer).register_forward_hook(_look)
    model.get_parameter("mix.weight").register_hook(lambda grad: None)  # somebody else's, too
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    images = torch.randn(pictures, 2, 7, 10, generator=generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
        # Logits near 1: through a softmax, large ones would get no gradient. Centred, so that the likeliest classes of the
        # pictures differ.
        weight, bias = model.get_parameter("head.weight"), model.get_parameter("head.bias")
        features = images
        for layer in list(model)[:-1]:
            features = layer(features)
        logits = features @ weight.T
        scale = logits.std()
        weight.div_(scale)
        bias.copy_(-logits.mean(dim=0) / scale)
        labels, moved = _labels(rng, (logits - logits.mean(dim=0)).argmax(dim=1).tolist())
        for parameter in (weight, bias):
            parameter.copy_(parameter.roll(-moved, 0))
    return Net(model, images, torch.tensor(labels))


def _labels(rng: Draw, likeliest: list[int]) -> tuple[list[int], int]:
    """Return a class for each picture, and how far all classes are to be moved down for these.

    None is the likeliest of its picture. The first two fall in even turns and rise in odd ones, and the lower is 0: whoever
    takes 0 for no label asks for a class which neither of them has. Whoever sorts them asks for other classes, which are
    not the likeliest ones either. Two pictures share a label: whoever has one weight for each class mixes them up.
    """
    while True:
        labels = [rng.choice([k for k in range(4) if k != best]) for best in likeliest]
        turned = (labels[0] > labels[1]) == (rng.turn % 2 == 0) and labels[0] != labels[1]
        lower = min(labels[:2])
        other = max(labels[:2]) != likeliest[labels.index(lower)]
        # As all of them move in a circle, those below the lower come out on top.
        ranks = [sorted((k - lower) % 4 for k in labels), [(k - lower) % 4 for k in likeliest]]
        if turned and other and ranks[0] != ranks[1] and len(set(labels)) < len(labels):
            return [(k - lower) % 4 for k in labels], lower


def make_call(rng: Draw, second: str = "relu1") -> tuple[Net, str]:
    """Return (net, layer): maps smaller than the pictures, then those of `second`, then those of a single picture.

    The last are of no ReLU, and also below 0; their logits are large, so that a map goes above 1. Maps of OVERWRITTEN do
    not keep their values as the model runs on, and their gradient is not that behind the ReLU. The first layer is not that
    ReLU then: to ask for it in every case would look like maps that were overwritten.
    """
    model, images, labels, _ = make_net(rng)
    layer, pictures = (("pool" if second == OVERWRITTEN else AFTER, 3), (second, 3), ("mix", 1))[rng.turn]
    if pictures == 1:
        with torch.no_grad():
            for parameter in model.get_submodule("head").parameters():
                parameter.mul_(1000)
    if layer == OVERWRITTEN:
        model.relu2 = Overwriting()
    return Net(model, images[:pictures], labels[:pictures], used=rng.turn == 1), layer


def call_before(net: Net, answer: Any, *arguments: Any) -> Any:
    """Return what the answer gives while a net that is `used` has other weights; None for any other net."""
    if not net.used:
        return None
    with other_weights(net.model):
        return copies(answer(*arguments))


def observe(answer: Any, call: tuple[Net, str]) -> dict[str, Any]:
    """Call the answer for a net and a layer: its result, and whether that holds a graph."""
    net, layer = call
    arguments = net.model, net.model.get_submodule(layer), net.images, net.labels
    before = call_before(net, answer, *arguments)
    result = answer(*arguments)
    attached = isinstance(result, torch.Tensor) and result.requires_grad
    return {"before": before, "result": copies(result), "attached": int(attached)}
