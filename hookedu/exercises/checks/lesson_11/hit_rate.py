"""What decides about 11.3, `hit_rate(cams, boxes)`."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from hookedu.exercises.criteria import Check, Throughout
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_11.hit_rate import PROBE, Batch


class _Batch:
    """A batch with the highest point of each map, and the rate."""

    def __init__(self, batch: Batch) -> None:
        self.cams, self.boxes = batch
        self.n, self.height, self.width = self.cams.shape
        self.mass = self.cams.sum(dim=(1, 2))
        self.columns, self.rows = torch.arange(float(self.width)), torch.arange(float(self.height))
        self.place = self.cams.flatten(1).argmax(dim=1)
        self.x, self.y = self.place % self.width, self.place // self.width
        self.want = self.rate(self.x, self.y)
        self.dark = int((self.cams.amax((1, 2)) == self.cams.amin((1, 2))).sum())  # all of them hits

    def rate(self, x: torch.Tensor, y: torch.Tensor, moved: Any = 0) -> float:
        """Return the share of these points in the boxes, whose edges `x0, y0, x1, y1` may have moved."""
        return _inside(x, y, self.boxes + moved).double().mean().item()

    def moved(self, *edges: int) -> float:
        """Return the rate with the edges of all boxes moved this far."""
        return self.rate(self.x, self.y, torch.tensor(edges))

    def at(self, place: torch.Tensor, width: int = 0) -> float:
        """Return the rate of other places, or for rows of another width."""
        width = width or self.width
        return self.rate(place % width, place // width)


def _inside(x: torch.Tensor, y: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    x0, y0, x1, y1 = boxes.unbind(1)
    return (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)


def _share_of_sum(b: _Batch) -> list[float]:
    inside = _inside(b.columns, b.rows[:, None], b.boxes[:, :, None, None])
    return [((b.cams * inside).sum(dim=(1, 2)) / b.mass).mean().item()]


_LIKELY: dict[str, Callable[[_Batch], list[float]]] = {
    "absolute": lambda b: [b.at(b.cams.abs().flatten(1).argmax(dim=1))],
    "lowest": lambda b: [b.at(b.cams.flatten(1).argmin(dim=1))],
    "end_included": lambda b: [b.moved(0, 0, 1, 1), b.moved(0, 0, 1, 0), b.moved(0, 0, 0, 1)],
    "start_left_out": lambda b: [b.moved(1, 1, 0, 0), b.moved(1, 0, 0, 0), b.moved(0, 1, 0, 0)],
    "both_edges": lambda b: [b.moved(1, 1, 1, 1)],
    "swapped": lambda b: [b.rate(b.y, b.x)],
    "wrong_width": lambda b: [b.at(b.place, width=b.height)],
    "fixed_width": lambda b: [b.at(b.place, width=64)],
    "centre_of_mass": lambda b: [b.rate(b.cams.sum(1) @ b.columns / b.mass, b.cams.sum(2) @ b.rows / b.mass)],
    "one_peak": lambda b: [b.at(b.cams.argmax() % b.cams[0].numel())],
    "one_axis": lambda b: [b.rate(b.x, b.boxes[:, 1]), b.rate(b.boxes[:, 0], b.y)],
    "sizes": lambda b: [b.rate(b.x, b.y, F.pad(b.boxes[:, :2], (2, 0)))],
    "share_of_sum": _share_of_sum,
    "dark_maps": lambda b: [(b.n * b.want - b.dark) / n for n in (b.n, b.n - b.dark)],
    "percent": lambda b: [100 * b.want],
    "counts": lambda b: [b.n * b.want],
    "misses": lambda b: [1 - b.want],
}


def _number(value: Any) -> float | None:
    """Convert a number, or a tensor that holds one, to a float; None for anything else."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if type(value) in (int, float) else None


def _is(rate: Any, want: float) -> bool:
    """Check whether a rate is `want` up to float32 rounding, which is larger for percentages."""
    number = _number(rate)
    if number is None or math.isnan(want):
        return number is not None and math.isnan(number)
    return math.isclose(number, want, rel_tol=1e-5, abs_tol=1e-6)


def _gives(ways: Callable[[_Batch], list[float]]) -> Throughout:
    """Return the condition that one and the same of these ways gave the rate of each batch; there are three at most."""
    return Throughout(*(lambda saw, batch, n=n: _is(saw.result, ways(batch)[n]) for n in range(3)))


def _looks_like_nothing_else(batch: Batch) -> bool:
    """Check whether likely mistakes differ from others that have no message: from negative numbers cut off, from peaks averaged."""
    b = _Batch(batch)
    peaks = [(cam == cam.max()).nonzero().double().mean(0) for cam in b.cams]
    averaged = b.rate(torch.stack([peak[1] for peak in peaks]), torch.stack([peak[0] for peak in peaks]))
    cut = b.at(b.cams.clamp(min=0).flatten(1).argmax(dim=1))
    touching = _inside(b.columns, b.rows[:, None], b.boxes[:, :, None, None]) * b.cams
    touched = (touching.amax((1, 2)) == b.cams.amax((1, 2))).double().mean().item()
    likely = {rate for ways in _LIKELY.values() for rate in ways(b)} - {b.want}
    return not likely & {averaged, cut, touched}


EXERCISE = Exercise(
    PROBE,
    key=_Batch,
    suits=_looks_like_nothing_else,
    given=lambda saw, batch: (
        f"cams: {batch.n}×{batch.height}×{batch.width}; boxes: {batch.n}×4, boxes[-1] == {show(batch.boxes[-1])}"
    ),
    checks=[
        Check(
            "rate",
            "result",
            want=lambda batch: batch.want,
            equal=_is,
            points=3,
            essential=True,
            expected=lambda saw, batch: f"{batch.want:g}",
            got=lambda saw, batch: show(saw.result) if (rate := _number(saw.result)) is None else f"{rate:g}",
            mistakes={
                "returns_nothing": lambda saw, batch: saw.result is None,
                "in_list": lambda saw, batch: len(saw.result) == 1 and _is(saw.result[0], batch.want),
                "one_each": lambda saw, batch: len(saw.result) == batch.n and _number(saw.result) is None,
                **{mistake: _gives(ways) for mistake, ways in _LIKELY.items()},
                "nothing_hit": lambda saw, batch: _is(saw.result, 0.0),
            },
        ),
    ],
    raises={
        "swapped": r"max\(\): Expected reduction dim",
        "mean_of_bools": r"mean\(\): could not infer output dtype",
    },
)
