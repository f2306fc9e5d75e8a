"""The data set: images of one shape each, rendered on access."""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset

from hookedu.models.shapes.drawing import CLASSES, box_of, scene

_LABELS, _SCENE = 1, 2  # independent random streams of one seed


class Sample(NamedTuple):
    """One image with its ground truth; a `DataLoader` collates samples into one Sample of batches.

    Attributes
    ----------
    image : torch.Tensor
        (3, 64, 64) float32, RGB, from 0 to 1.
    label : int
        Index of the class in `CLASSES`.
    box : torch.Tensor
        (4,) int64: the tight bounding box x0, y0, x1, y1 in pixels; `image[:, y0:y1, x0:x1]` contains the
        shape.
    mask : torch.Tensor
        (64, 64) bool, True on the shape.
    distractors : torch.Tensor
        (64, 64) bool, True on the strokes around it.
    """

    image: torch.Tensor
    label: int
    box: torch.Tensor
    mask: torch.Tensor
    distractors: torch.Tensor


class Shapes(Dataset):
    """Data set of images with one filled shape each.

    Item i depends only on `seed` and i; no file is read.

    - The class is the form of the shape; its colour, size and position are independent of the class.
    - The whole shape is visible, at least 2 pixels from the border.
    - There are 2 to 4 distractors: lines, arcs and zigzags in the colours of shapes, never closed or filled,
      at least 2 pixels from the bounding box of the shape.
    - Of every six items that start at a multiple of six, each is of a different class.

    The model that is shipped (`load_model`) was trained on seed 0 only.

    Parameters
    ----------
    length : int
        Number of items.
    seed : int
        Seed of all random numbers.

    Raises
    ------
    ValueError
        If `length` or `seed` is negative.
    IndexError
        On access to an item that does not exist, negative indices included.
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
