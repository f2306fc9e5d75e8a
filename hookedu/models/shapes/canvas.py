"""A picture with shapes where one wants them, as the network was trained to see them."""

from collections.abc import Iterable
from functools import cache

import numpy as np
import torch

from hookedu.models.shapes.drawing import AREA, CLASSES, PALETTE, SIZE, ground, shape_at

_SCALE = (sum(AREA) / 2) ** 0.5  # of all shapes, halfway between the smallest and the largest of the data set
# One for each class: not those of a heat map, and all visible on the pattern.
_COLOURS = dict(zip(CLASSES, PALETTE[[5, 6, 3, 4, 7, 0]], strict=True))


def draw_shapes(
    shapes: Iterable[tuple[str, float, float]], ground: torch.Tensor | None = None
) -> torch.Tensor:
    """Return a picture with these shapes: (3, 64, 64) float32, RGB, from 0 to 1.

    Unlike the pictures of `Shapes`, it is the same each time, may hold any number of shapes, and no lines to distract.
    Every shape is upright, and all of a kind have one colour.

    Parameters
    ----------
    shapes : iterable of (str, float, float)
        Of each shape its class, and the column and the row of its centre in pixels. A later one covers an earlier one.
    ground : torch.Tensor, optional
        The picture behind the shapes, (3, 64, 64) from 0 to 1; by default a dull pattern.

    Raises
    ------
    ValueError
        If there is no such class, or the ground has another size.

    Examples
    --------
    >>> from hookedu.models.shapes import CLASSES, draw_shapes, load_model
    >>> picture = draw_shapes([("star", 20, 32)])
    >>> CLASSES[load_model()(picture[None]).argmax()]
    'star'
    """
    if ground is None:
        picture = _pattern()
    elif tuple(ground.shape) == (3, SIZE, SIZE):
        picture = ground.detach().cpu().double().numpy().transpose(1, 2, 0)
    else:
        raise ValueError(f"ground must be 3×{SIZE}×{SIZE}, got {tuple(ground.shape)}")
    for kind, x, y in shapes:
        if kind not in CLASSES:
            raise ValueError(f"no class {kind!r}, only {', '.join(CLASSES)}")
        picture = picture + (_COLOURS[kind] - picture) * shape_at(kind, x, y, _SCALE)[..., None]
    pixels = np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous().float() / 255


@cache
def _pattern() -> np.ndarray:
    rng = np.random.default_rng(_PATTERN)
    picture = ground(rng)
    return picture + rng.normal(0, 0.02, size=picture.shape)


_PATTERN = 3  # its seed: one of those whose background is dark, so that a heat map stands out
