"""The data set: pictures of one shape each, drawn when they are asked for."""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset

from hookedu.models.shapes.drawing import CLASSES, box_of, scene

_LABELS, _SCENE = 1, 2  # two streams of random numbers from one seed


class Sample(NamedTuple):
    """One picture and the truth about it; a `DataLoader` makes it a Sample of batches.

    image: (3, 64, 64) float32 from 0 to 1, RGB. label: its class, an index into `CLASSES`.
    box: (4,) int64, x0, y0, x1, y1 in pixels and tight, so that `image[:, y0:y1, x0:x1]` is the shape.
    mask: (64, 64) bool, True on the shape. distractors: (64, 64) bool, True on the strokes around it.
    """

    image: torch.Tensor
    label: int
    box: torch.Tensor
    mask: torch.Tensor
    distractors: torch.Tensor


class Shapes(Dataset):
    """`length` pictures of one filled shape each; item i depends on (seed, i) alone, and no file is read.

    What holds of every item: the class is the shape's form, and neither its colour, its size nor its place tells it;
    the whole shape is visible, at least 2 pixels from the border; 2 to 4 distractors (lines, arcs and zigzags in the
    colours of shapes, never closed or filled) stay at least 2 pixels clear of its box; and in every six items that
    start at a multiple of six each class comes once. The shipped model (`load_model`) has seen seed 0 only.

    Raises IndexError for an item that is not there, ValueError for a negative length or seed.
    """

    classes = CLASSES

    def __init__(self, length: int, seed: int) -> None:
        if length < 0 or seed < 0:
            raise ValueError(f"length and seed must not be negative, got length={length}, seed={seed}")
        self.length, self.seed = length, seed

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < self.length:
            raise IndexError(f"item {index} of {self.length}: items are counted from 0")
        block, place = divmod(index, len(CLASSES))
        label = int(np.random.default_rng((_LABELS, self.seed, block)).permutation(len(CLASSES))[place])
        pixels, mask, distractors = scene(CLASSES[label], np.random.default_rng((_SCENE, self.seed, index)))
        return Sample(
            image=torch.from_numpy(pixels).permute(2, 0, 1).contiguous().float() / 255,
            label=label,
            box=torch.tensor(box_of(mask)),
            mask=torch.from_numpy(mask),
            distractors=torch.from_numpy(distractors),
        )
