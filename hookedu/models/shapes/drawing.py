"""Rendering of one scene: a filled shape and some strokes on a textured, noisy background.

The only source of randomness is the `numpy.random.Generator` that a function is given. Points are (x, y) in
pixels from the upper left corner; the centre of a pixel is at its index.
"""

from colorsys import hsv_to_rgb
from typing import NamedTuple

import numpy as np

SIZE = 64  # pixels per side
CLASSES = ("circle", "square", "triangle", "star", "cross", "heart")
AREA = (160.0, 340.0)  # of a shape, in pixels; the range is the same for every class
MARGIN = 2  # minimum distance in pixels: shape to border, box of the shape to stroke, stroke to stroke
STROKES = (2, 4)  # minimum and maximum number of distractors per image
# Saturated colours, in contrast to the dull backgrounds. Shapes and strokes take any of them alike.
PALETTE = np.array(
    [
        (0.90, 0.17, 0.19),  # red
        (0.98, 0.55, 0.10),  # orange
        (0.98, 0.85, 0.15),  # yellow
        (0.20, 0.72, 0.30),  # green
        (0.08, 0.72, 0.76),  # teal
        (0.15, 0.38, 0.90),  # blue
        (0.56, 0.25, 0.82),  # purple
        (0.96, 0.42, 0.71),  # pink
    ]
)
_ROWS, _COLUMNS = np.mgrid[:SIZE, :SIZE].astype(np.float64)


class Outline(NamedTuple):
    """A polygon of area 1 around the origin with K corners, sorted by angle."""

    corners: np.ndarray  # (K, 2)
    angles: np.ndarray  # (K,): of each corner, in radians
    normals: np.ndarray  # (K, 2): outward unit normal of the edge that ends at each corner
    offsets: np.ndarray  # (K,): distance of the line through that edge from the origin

    @classmethod
    def through(cls, points) -> "Outline":
        """Return the outline through some points, star-shaped: each ray from the origin meets it once."""
        corners = np.asarray(points, dtype=np.float64)
        corners = corners[np.argsort(np.arctan2(corners[:, 1], corners[:, 0]))]
        before = np.roll(corners, 1, axis=0)
        area = 0.5 * np.sum(before[:, 0] * corners[:, 1] - before[:, 1] * corners[:, 0])
        corners, before = corners / area**0.5, before / area**0.5
        along = corners - before
        normals = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.hypot(*along.T)[:, None]
        angles = np.arctan2(corners[:, 1], corners[:, 0])
        return cls(corners, angles, normals, np.sum(normals * corners, axis=1))


def _ring(radii, turn: float = -0.25) -> list[tuple[float, float]]:
    """Return points at equal angles around the origin; the first is `turn` full turns from the x axis."""
    angles = 2 * np.pi * (np.arange(len(radii)) / len(radii) + turn)
    return list(zip(radii * np.cos(angles), radii * np.sin(angles), strict=True))


def _heart() -> list[tuple[float, float]]:
    """Return points of the sixth curve of https://mathworld.wolfram.com/HeartCurve.html, y downwards."""
    t = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    return list(
        zip(
            16 * np.sin(t) ** 3,
            -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)),
            strict=True,
        )
    )


_ARM, _END = 0.36, 1.0  # half the width of an arm of the cross, and its length
OUTLINES = {
    "circle": Outline.through(_ring(np.ones(48))),
    "square": Outline.through(_ring(np.ones(4), turn=0.125)),
    "triangle": Outline.through(_ring(np.ones(3))),
    "star": Outline.through(_ring(np.tile([1.0, 0.45], 5))),
    "cross": Outline.through(
        [
            (x * a, y * b)
            for a, b in [(_ARM, _END), (_END, _ARM), (_ARM, _ARM)]
            for x in (-1, 1)
            for y in (-1, 1)
        ]
    ),
    "heart": Outline.through(_heart()),
}


def shape(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return the coverage of each pixel by a shape, from 0 to 1: (SIZE, SIZE).

    Its position is random, its rotation at most 20 degrees to either side.
    """
    scale, turn = np.sqrt(rng.uniform(*AREA)), np.deg2rad(rng.uniform(-20, 20))
    corners = OUTLINES[kind].corners @ _turned(scale, turn)
    low, high = MARGIN - corners.min(axis=0), SIZE - 1 - MARGIN - corners.max(axis=0)
    x0, y0 = rng.uniform(low, high)
    return shape_at(kind, x0, y0, scale, turn)


def shape_at(kind: str, x0: float, y0: float, scale: float, turn: float = 0.0) -> np.ndarray:
    """Return the coverage of each pixel by a shape around x0, y0, from 0 to 1: (SIZE, SIZE).

    `scale` is the root of its area in pixels, `turn` its rotation in radians.
    """
    outline = OUTLINES[kind]
    (cos, sin), _ = _turned(scale, turn)
    across, down = _COLUMNS - x0, _ROWS - y0
    x, y = (cos * across + sin * down) / scale**2, (cos * down - sin * across) / scale**2
    # The edge that the ray from the centre through a pixel meets, and the distance of the pixel beyond its
    # line.
    edge = np.searchsorted(outline.angles, np.arctan2(y, x)) % len(outline.angles)
    normal = outline.normals[edge]
    beyond = scale * (normal[..., 0] * x + normal[..., 1] * y - outline.offsets[edge])
    return np.clip(0.5 - beyond, 0, 1)


def _turned(scale: float, turn: float) -> np.ndarray:
    """Return the matrix that enlarges and turns points, one in each row: (2, 2)."""
    cos, sin = np.cos(turn) * scale, np.sin(turn) * scale
    return np.array([(cos, sin), (-sin, cos)])


def box_of(mask: np.ndarray) -> tuple[int, int, int, int]:
    """Return the tight bounding box x0, y0, x1, y1 of a mask: `mask[y0:y1, x0:x1]` holds all of it."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def stroke(rng: np.random.Generator, taken: np.ndarray) -> np.ndarray:
    """Return the coverage of each pixel by a distractor, from 0 to 1: (SIZE, SIZE).

    The distractor keeps a distance of MARGIN from pixels where `taken` is True. It is a straight line, an arc
    or a zigzag about 3 pixels wide: never closed or filled, so it belongs to no class.
    """
    while True:  # this ends soon: the box of a shape and three strokes take a third of the image
        points, width = rng.uniform(4, SIZE - 5, size=2) + _path(rng), rng.uniform(2.2, 3.4)
        if not taken[_along(points, width + 2 * MARGIN) > 0].any():
            return _along(points, width)


def _path(rng: np.random.Generator) -> np.ndarray:
    """Return the corners of a line, an arc (at most 0.4 of a turn) or a zigzag around the origin: (K, 2)."""
    kind, length, turn = rng.integers(3), rng.uniform(12, 20), rng.uniform(0, 2 * np.pi)
    if kind == 0:
        points = np.array([(-0.5, 0.0), (0.5, 0.0)]) * length
    elif kind == 1:
        angles = np.linspace(-0.5, 0.5, 7) * 2 * np.pi * rng.uniform(0.25, 0.4)
        points = np.stack([np.cos(angles) - 0.8, np.sin(angles)], axis=1) * length / 2
    else:
        points = np.array([(-0.6, -0.2), (-0.2, 0.2), (0.2, -0.2), (0.6, 0.2)]) * length
    cos, sin = np.cos(turn), np.sin(turn)
    return points @ np.array([(cos, sin), (-sin, cos)])


def _along(points: np.ndarray, width: float) -> np.ndarray:
    """Return the coverage of each pixel by a polyline: (SIZE, SIZE)."""
    # A stroke is small, so only the pixels near it are computed.
    low = np.maximum(points.min(axis=0) - width, 0).astype(int)
    high = np.maximum(points.max(axis=0) + width + 1, 0).astype(int)
    near = slice(low[1], high[1]), slice(low[0], high[0])
    start, along = points[:-1], np.diff(points, axis=0)
    x, y = _COLUMNS[near][..., None] - start[:, 0], _ROWS[near][..., None] - start[:, 1]
    nearest = np.clip((x * along[:, 0] + y * along[:, 1]) / np.sum(along**2, axis=1), 0, 1)
    distance = np.sqrt((x - nearest * along[:, 0]) ** 2 + (y - nearest * along[:, 1]) ** 2).min(axis=-1)
    covers = np.zeros((SIZE, SIZE))
    covers[near] = np.clip(0.5 + width / 2 - distance, 0, 1)
    return covers


def ground(rng: np.random.Generator) -> np.ndarray:
    """Return a background of two dull colours: (SIZE, SIZE, 3), shading, clouds, stripes or checks."""
    kind, turn = rng.integers(4), rng.uniform(0, np.pi)
    if kind == 0:
        pattern = _wave(turn, rng.uniform(90, 160), rng)
    elif kind == 1:
        pattern = np.mean([_wave(rng.uniform(0, np.pi), rng.uniform(18, 60), rng) for _ in range(5)], axis=0)
    elif kind == 2:
        pattern = _wave(turn, rng.uniform(6, 16), rng)
    else:
        length = rng.uniform(12, 28)
        pattern = np.tanh(4 * _wave(turn, length, rng) * _wave(turn + np.pi / 2, length, rng))
    hue, saturation, value = rng.uniform(0, 1), rng.uniform(0.05, 0.3), rng.uniform(0.25, 0.85)
    contrast = rng.uniform(0.04, 0.12)
    dark, light = (
        np.array(hsv_to_rgb((hue + shift) % 1, saturation, value + step))
        for shift, step in ((0, -contrast), (rng.uniform(-0.1, 0.1), contrast))
    )
    return dark + (light - dark) * (pattern[..., None] + 1) / 2


def _wave(turn: float, length: float, rng: np.random.Generator) -> np.ndarray:
    """Return a plane wave from -1 to 1 in direction `turn`, of wavelength `length` pixels: (SIZE, SIZE)."""
    phase = (_COLUMNS * np.cos(turn) + _ROWS * np.sin(turn)) / length + rng.uniform()
    return np.sin(2 * np.pi * phase)


def scene(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an image (SIZE, SIZE, 3) as uint8, and boolean masks of the shape and of the distractors.

    A pixel belongs to a mask if at least half of it is covered. Colours are independent of the class.
    """
    picture = ground(rng)
    visible = PALETTE[np.abs(PALETTE - picture.mean(axis=(0, 1))).max(axis=1) > 0.35]
    covers = shape(kind, rng)
    mask, distractors = covers >= 0.5, np.zeros((SIZE, SIZE), dtype=bool)
    x0, y0, x1, y1 = box_of(mask)
    taken = np.zeros((SIZE, SIZE), dtype=bool)
    taken[y0:y1, x0:x1] = True
    parts = [covers]
    for _ in range(rng.integers(STROKES[0], STROKES[1] + 1)):
        parts.append(stroke(rng, taken))
        distractors |= parts[-1] >= 0.5
        taken |= parts[-1] > 0
    for part in parts:
        colour = np.clip(visible[rng.integers(len(visible))] + rng.uniform(-0.08, 0.08, size=3), 0, 1)
        picture += (colour - picture) * part[..., None]
    picture += rng.normal(0, rng.uniform(0.01, 0.05), size=picture.shape)
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8), mask, distractors
