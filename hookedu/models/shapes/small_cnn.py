"""A small convolutional network in the field's usual form, and the weights that were trained for it."""

from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

from hookedu.models.shapes.drawing import CLASSES

WEIGHTS = Path(__file__).with_name("small_cnn.pt")


class SmallCNN(nn.Module):
    """Four blocks of conv, batch norm, ReLU and max pool; global average pool; a linear head.

    Images (N, 3, H, W) from 0 to 1 go in, logits (N, classes) come out. Each block doubles the coarseness, but for the
    last, which has no pool: a 64×64 image leaves `block4` as 64 maps of 8×8. No ReLU works in place, so a hook on any
    child may keep what it sees. Children: block1 to block4, each with conv, bn, relu (and pool); avgpool; head.

    Source of the form: VGG's blocks (https://arxiv.org/abs/1409.1556) with batch normalisation, and the head of
    Network in Network (https://arxiv.org/abs/1312.4400).
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
    layers = OrderedDict(
        conv=nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False),
        bn=nn.BatchNorm2d(width),
        relu=nn.ReLU(),
    )
    if pool:
        layers["pool"] = nn.MaxPool2d(2)
    return nn.Sequential(layers)


def load_model() -> SmallCNN:
    """A new `SmallCNN` with the trained weights, on the CPU and in eval mode; MODEL_CARD.md says what it is good for."""
    model = SmallCNN()
    model.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))
    return model.eval()
