"""A small convolutional network of the usual form, and its trained weights."""

from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

from hookedu.models.shapes.drawing import CLASSES

WEIGHTS = Path(__file__).with_name("small_cnn.pt")


class SmallCNN(nn.Module):
    """Small CNN: four convolutional blocks, global average pooling and a linear head.

    It maps images (N, 3, H, W) with values from 0 to 1 to logits (N, classes). Its children are `block1` to
    `block4`, each with `conv`, `bn`, `relu` and (except `block4`) `pool`, then `avgpool` and `head`. Each
    `pool` halves the resolution: for a 64×64 image the output of `block4` is 64 maps of 8×8. No ReLU works in
    place, so a hook on any child may keep the tensors it sees.

    The blocks are those of VGG (https://arxiv.org/abs/1409.1556) with batch normalisation, the head is that
    of Network in Network (https://arxiv.org/abs/1312.4400).

    Parameters
    ----------
    classes : int
        Number of logits.
    widths : tuple of int
        Number of channels of each block.
    """

    def __init__(
        self, classes: int = len(CLASSES), widths: tuple[int, int, int, int] = (16, 32, 48, 64)
    ) -> None:
        super().__init__()
        self.block1 = _block(3, widths[0], pool=True)
        self.block2 = _block(widths[0], widths[1], pool=True)
        self.block3 = _block(widths[1], widths[2], pool=True)
        self.block4 = _block(widths[2], widths[3], pool=False)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(widths[3], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block4(self.block3(self.block2(self.block1(x))))
        return self.head(self.avgpool(x).flatten(1))


def _block(channels: int, width: int, *, pool: bool) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv=nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False),
        bn=nn.BatchNorm2d(width),
        relu=nn.ReLU(),
    )
    if pool:
        layers["pool"] = nn.MaxPool2d(2)
    return nn.Sequential(layers)


def load_model() -> SmallCNN:
    """Return a new `SmallCNN` with the trained weights, on the CPU and in evaluation mode.

    MODEL_CARD.md describes its accuracy and its limits.
    """
    model = SmallCNN()
    model.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))
    return model.eval()
