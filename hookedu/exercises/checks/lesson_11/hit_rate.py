"""What decides about 11.3, `hit_rate(cams, boxes)`."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from hookedu.exercises.checks.lesson_11.shared import at_first_wrong
from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_11.hit_rate import PROBE, H, N, W

_X, _Y = torch.arange(float(W)), torch.arange(float(H))


class _Batch:
    """A batch with the highest point of each map, and the rate."""

    def __init__(self, cams: torch.Tensor, boxes: torch.Tensor) -> None:
        self.cams, self.boxes, self.mass = cams, boxes, cams.sum(dim=(1, 2))
        self.place = cams.flatten(1).argmax(dim=1)
        self.x, self.y = self.place % W, self.place // W
        self.want = self.rate(self.x, self.y)
        self.given = f"cams: {N}×{H}×{W}; boxes: {N}×4, boxes[0] == {show(boxes[0])}"

    def rate(self, x: torch.Tensor, y: torch.Tensor, moved: Any = 0) -> float:
        """Return the share of these points in the boxes, whose edges `x0, y0, x1, y1` may have moved."""
        return _inside(x, y, self.boxes + moved).double().mean().item()

    def moved(self, *edges: int) -> float:
        """Return the rate with the edges of all boxes moved this far."""
        return self.rate(self.x, self.y, torch.tensor(edges))

    def at(self, place: torch.Tensor, width: int = W) -> float:
        """Return the rate of other places, or for rows of another width."""
        return self.rate(place % width, place // width)


def _inside(x: torch.Tensor, y: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    x0, y0, x1, y1 = boxes.unbind(1)
    return (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)


def _share_of_sum(b: _Batch) -> list[float]:
    inside = _inside(_X, _Y[:, None], b.boxes[:, :, None, None])
    return [((b.cams * inside).sum(dim=(1, 2)) / b.mass).mean().item()]


_LIKELY: dict[str, Callable[[_Batch], list[float]]] = {
    "end_included": lambda b: [b.moved(0, 0, 1, 1), b.moved(0, 0, 1, 0), b.moved(0, 0, 0, 1)],
    "start_left_out": lambda b: [b.moved(1, 1, 0, 0), b.moved(1, 0, 0, 0), b.moved(0, 1, 0, 0)],
    "both_edges": lambda b: [b.moved(1, 1, 1, 1)],
    "swapped": lambda b: [b.rate(b.y, b.x)],
    "wrong_width": lambda b: [b.at(b.place, width=H)],
    "fixed_width": lambda b: [b.at(b.place, width=64)],
    "lowest": lambda b: [b.at(b.cams.flatten(1).argmin(dim=1))],
    "centre_of_mass": lambda b: [b.rate(b.cams.sum(1) @ _X / b.mass, b.cams.sum(2) @ _Y / b.mass)],
    "one_peak": lambda b: [b.at(b.cams.argmax() % (H * W))],
    "one_axis": lambda b: [b.rate(b.x, b.boxes[:, 1]), b.rate(b.boxes[:, 0], b.y)],
    "sizes": lambda b: [b.rate(b.x, b.y, F.pad(b.boxes[:, :2], (2, 0)))],
    "share_of_sum": _share_of_sum,
    "percent": lambda b: [100 * b.want],
    "counts": lambda b: [N * b.want],
    "misses": lambda b: [1 - b.want],
    "nothing_hit": lambda b: [0.0],
}


def _number(value: Any) -> float | None:
    """Convert a number, or a tensor that holds one, to a float; None for anything else."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if type(value) in (int, float) else None


def _is(rate: Any, want: float) -> bool:
    """Check whether a rate is `want` up to float32 rounding, which is larger for percentages."""
    number = _number(rate)
    return number is not None and math.isclose(number, want, rel_tol=1e-5, abs_tol=1e-6)


def _gives(ways: Callable[[_Batch], list[float]]) -> Of:
    """Return the condition that one of the ways gives every rate: a single one may be met by chance."""
    return lambda saw, key: any(all(map(_is, saw.results, way)) for way in zip(*map(ways, key), strict=True))


_first = partial(at_first_wrong, equal=_is)

EXERCISE = Exercise(
    PROBE,
    key=lambda batches: [_Batch(*batch) for batch in batches],
    given="hit_rate(cams, boxes)",
    checks=[
        Check(
            "rate",
            ok=_first(lambda rate, batch: _is(rate, batch.want)),
            points=3,
            essential=True,
            given=_first(lambda rate, batch: batch.given),
            expected=_first(lambda rate, batch: f"{batch.want:g}"),
            got=_first(lambda rate, batch: show(rate) if _number(rate) is None else f"{_number(rate):g}"),
            mistakes={
                "returns_nothing": _first(lambda rate, batch: rate is None),
                "one_each": _first(
                    lambda rate, batch: isinstance(rate, list | torch.Tensor) and _number(rate) is None
                ),
                **{mistake: _gives(ways) for mistake, ways in _LIKELY.items()},
            },
        ),
        Check(
            "untouched",
            ok=lambda saw, batches: saw.untouched,
            essential=True,
            expected=Say("unchanged"),
            got=Say("changed"),
            mistakes={"changes_arguments": True},
        ),
    ],
    raises={
        "swapped": r"max\(\): Expected reduction dim",
        "mean_of_bools": r"mean\(\): could not infer output dtype",
    },
)
