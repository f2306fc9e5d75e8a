"""A net without square maps, and what is observed of answers that explain it, for the probes of lesson 11."""

import random
from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.tools import copies, module_hooks


class Net(NamedTuple):
    """A small net of random weights, pictures, and for each picture a class other than the likeliest one.

    The head sees every position of the last maps, so gradients differ between positions: a missing average shows,
    which it would not before a global average pool.
    """

    model: nn.Sequential
    images: torch.Tensor
    labels: torch.Tensor


def make_net(rng: random.Random, pictures: int = 2) -> Net:
    """Return a net whose labels differ, as do the likeliest classes."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(2, 3, 3, padding=1),
        relu1=nn.ReLU(),
        pool=nn.MaxPool2d(2),
        conv2=nn.Conv2d(3, 4, 3, padding=1),
        relu2=nn.ReLU(),
        flat=nn.Flatten(),
        head=nn.Linear(4 * 3 * 4, 4),
    )
    model = nn.Sequential(layers)
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    while True:
        images = torch.randn(pictures, 2, 6, 8, generator=generator)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(generator=generator)
            # Logits near 1: through a softmax, large ones would get no gradient.
            model.get_parameter("head.weight").div_(model(images).std())
            # Centred, so that the likeliest classes of the pictures differ.
            model.get_parameter("head.bias").sub_(model(images).mean(dim=0))
            likeliest = model(images).argmax(dim=1).tolist()
        labels = [rng.choice([k for k in range(4) if k != best]) for best in likeliest]
        net = Net(model, images, torch.tensor(labels))
        if len(set(likeliest)) > 1 and len(set(labels)) > 1:
            return net


def make_calls(rng: random.Random) -> list[tuple[Net, str]]:
    """Return a net twice: with a layer whose maps are smaller than the picture, and with one of its size."""
    net = make_net(rng)
    return [(net, "relu2"), (net, "relu1")]


def observe(answer: Any, calls: list[tuple[Net, str]]) -> dict[str, Any]:
    """Call the answer for each net and layer: its results, how many hold a graph, and how many hooks it left."""
    results = [
        answer(net.model, net.model.get_submodule(layer), net.images.clone(), net.labels.clone())
        for net, layer in calls
    ]
    attached = sum(isinstance(result, torch.Tensor) and result.requires_grad for result in results)
    return {"results": copies(results), "attached": attached, "left": module_hooks(calls[0][0].model)}
